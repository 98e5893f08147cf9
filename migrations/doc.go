// Package migrations brings a database to the schema that this binary uses.
//
// It promises:
//   - Any number of replicas may call [Up] at once, on an empty database too,
//     and through a pooler in transaction mode. One of them migrates, the
//     others wait and find nothing to do.
//   - Migrations only add. A binary of the release before goes on working,
//     which is what a rolling deploy and a rollback need. The schema stores
//     the oldest binary that may use it and [Check] compares.
//   - A change of a table never queues in front of the table's users for more
//     than 200 ms: it gives way and tries again.
//
// Everything is in the schema pawl of the user's own database, River's tables
// included, or results could not commit with their markers.
//
// The files in sql are goose migrations. River's own are number 2, up to a
// pinned version of River's; a newer River gets a new number.
package migrations
