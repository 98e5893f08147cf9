package schedule

// Words says a schedule in English, "" where it has no words for it.
func Words(spec Spec) string { return "" }
