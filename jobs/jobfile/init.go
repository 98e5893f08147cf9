package jobfile

import _ "embed"

//go:embed init.yaml
var initText string

// Init returns the job file that pawl init writes: commented, without an issue, with a
// job that runs as it is.
func Init() []byte { return []byte(initText) }
