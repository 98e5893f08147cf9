// Package jobfile reads the job file, pawl.yaml: jobs declared without writing Go.
//
// Its promise: [Parse] tells everything that is wrong with a file at once, each with its
// line and column, in a sentence that names the job, the field, the value and the fix;
// and a fault in one job spoils that job alone ([Job].Broken). What it returns is complete:
// every default is filled in, every name that a job refers to exists, every template
// holds known values only. It opens no database and starts nothing.
//
//   - The structs are the format. Their tags hold each field's name, default, range and
//     meaning; the reader, [Schema] and docs/jobfile.md are made from them.
//   - ${env:X} and ${file:…} are secrets. Their values never appear in an [Issue], nor
//     when a [Text] is printed, logged or marshalled: it shows what was written.
//   - {{…}} stands for a few listed values ([Text.Expand]): no loops, no code. A template
//     is never pasted into SQL or into shell text.
//   - YAML's anchors, aliases, tags and merge keys are refused; defaults: does their work.
//
// Schedules are checked by package schedule; which handler a replica has, and which jobs
// the database knows, only a running one can tell ([File.CheckRetired]).
package jobfile
