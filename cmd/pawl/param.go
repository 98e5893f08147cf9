package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// paramFlag gives params to what is owed.
func paramFlag(cmd *cobra.Command, given *[]string) {
	cmd.Flags().StringArrayVar(given, "param", nil, "NAME=VALUE, of a param that the job declares; may be repeated")
}

// readParams reads what --param was given.
func readParams(given []string) (map[string]string, error) {
	params := map[string]string{}
	for _, x := range given {
		name, value, ok := strings.Cut(x, "=")
		if !ok || name == "" {
			return nil, usage("--param is %q: write the param's name, = and its value, as in --param mode=dry", x)
		}
		if _, twice := params[name]; twice {
			return nil, usage("--param %s is given twice: give each param one value", name)
		}
		params[name] = value
	}
	return params, nil
}
