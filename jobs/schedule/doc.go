// Package schedule says when a job is due and which period each tick owes.
//
// Its promise: every function is a pure function of its arguments, so that all
// replicas that ask the same question get the same answer, whatever their host's
// zone and whenever they started. There is no database, no timer and no clock here.
//
//   - [Parse] checks a [Spec]; every error holds a [*FieldError] that names the field,
//     the value and the fix. A schedule that never matches, or that owes one period
//     twice, is refused when it is loaded, not when it is due.
//   - [Schedule.Next] has defined daylight saving behaviour. Fixed hours (numbers,
//     lists, ranges) run once per wall time: one that is missing runs at the first
//     instant after the gap, one that is repeated on the first pass. With the hour
//     written * or */n every instant runs whose wall time matches: none in a gap, both
//     passes of an overlap. @every counts elapsed time from the Unix epoch.
//   - [Schedule.Period] names what a tick owes: a local date, ISO week, month, hour
//     with its offset (a repeated hour has two keys) or a UTC instant.
//   - [Schedule.Ticks] applies the catch-up policy to a stretch of time: every tick in
//     it is owed or carries the reason why not, in bounded memory.
//   - [Schedule.JitterOf] spreads starts by a hash of job and period, which every replica
//     and every attempt computes alike; [Schedule.DueAt] and [Schedule.LateAfter] say by
//     when to start and to be done.
//   - [Schedule.Notes] tells beforehand what a change of clocks will do, in sentences;
//     [Schedule.OffsetNote] and [Schedule.LongestGap] are what a linter warns of.
//
// The time zones are the embedded release [TZVersion], never the host's files: they
// change with the binary and with nothing else.
//
// Cron text is read by robfig/cron's parser, field by field; what the text means at a
// change of clocks is decided here, from the text as written.
package schedule
