package kinds

import "fmt"

// ConfigError names the field of a [Command], [SQL], [HTTP] or [Reconcile] that can't be used, its value and the fix.
type ConfigError struct {
	Field string
	Value any
	Fix   string
}

// Error implements error.
func (e *ConfigError) Error() string {
	if s, ok := e.Value.(string); ok {
		return fmt.Sprintf("kinds: %s %q: %s", e.Field, s, e.Fix)
	}
	return fmt.Sprintf("kinds: %s %v: %s", e.Field, e.Value, e.Fix)
}
