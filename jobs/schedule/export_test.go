package schedule

// ZoneNames returns the names of all embedded zones.
func ZoneNames() []string { return openZones().names }

// Zoneinfo returns the embedded file.
func Zoneinfo() string { return zoneinfo }
