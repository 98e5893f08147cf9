package migrations

// What the tests in package migrations_test need: package pgtest imports this
// one, so that tests inside it can't use pgtest.
var (
	OpenDB        = openDB
	Alone         = alone
	RiverMigrator = riverMigrator
)

const (
	Turn         = turn
	RiverVersion = riverVersion
)
