module pawl/web/browsertest

go 1.26.0

require pawl v0.0.0

replace pawl => ../..
