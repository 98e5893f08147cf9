package main

import (
	"net/netip"
	"strings"

	"github.com/spf13/pflag"

	"pawl/web"
)

// pageFlags are who may do what on the pages.
type pageFlags struct {
	readOnly             bool
	origins              []string
	header, role         string
	networks             []string
	operators, approvers []string
}

func (f *pageFlags) add(fs *pflag.FlagSet) {
	fs.BoolVar(&f.readOnly, "read-only", false, "let nobody do anything on the pages, whatever their role; the API has its own roles")
	fs.StringSliceVar(&f.origins, "trusted-origin", nil, "the pages' address as browsers see it, such as https://pawl.example.com, where a proxy changes the host's name")
	fs.StringVar(&f.header, "proxy-header", "", "the header in which a proxy says who asks for a page, such as X-Forwarded-User")
	fs.StringSliceVar(&f.networks, "proxy-networks", nil, "from where --proxy-header is believed, such as 10.0.0.0/8,127.0.0.1/32")
	fs.StringVar(&f.role, "proxy-role", "reader", "what those may do whom --proxy-header names: reader or operator")
	fs.StringSliceVar(&f.operators, "proxy-operators", nil, "names that are operators, whatever --proxy-role says")
	fs.StringSliceVar(&f.approvers, "proxy-approvers", nil, "names that may approve what others ask for")
	for flag, name := range map[string]string{
		"read-only": "PAWL_READ_ONLY", "trusted-origin": "PAWL_TRUSTED_ORIGIN", "proxy-header": "PAWL_PROXY_HEADER", "proxy-networks": "PAWL_PROXY_NETWORKS",
		"proxy-role": "PAWL_PROXY_ROLE", "proxy-operators": "PAWL_PROXY_OPERATORS", "proxy-approvers": "PAWL_PROXY_APPROVERS",
	} {
		variable(fs, flag, name)
	}
}

// check refuses what can be refused without a database.
func (f *pageFlags) check() error { return f.apply(&web.Config{}) }

// apply makes them part of what is served.
func (f *pageFlags) apply(cfg *web.Config) (err error) {
	cfg.ReadOnly = f.readOnly
	if cfg.Cross, err = web.Trusting(f.origins...); err != nil {
		return &coded{codeUsage, err}
	}
	if f.header == "" {
		if f.role != "reader" {
			return usage("--proxy-role is %q, without --proxy-header: name the header too, such as X-Forwarded-User", f.role)
		}
		if len(f.networks)+len(f.operators)+len(f.approvers) > 0 {
			return usage("--proxy-networks, --proxy-operators or --proxy-approvers are given without --proxy-header: name the header too, such as X-Forwarded-User")
		}
		return nil
	}
	p := &web.Proxy{Header: f.header, Role: f.role, Operators: f.operators, Approvers: f.approvers, Logger: cfg.Logger}
	for _, n := range f.networks {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(n))
		if err != nil {
			return usage("--proxy-networks has %q: use networks such as 10.0.0.0/8, and 127.0.0.1/32 for one address", n)
		}
		p.Networks = append(p.Networks, prefix.Masked())
	}
	if err := p.Check(); err != nil {
		return &coded{codeUsage, err}
	}
	cfg.Proxy = p
	return nil
}
