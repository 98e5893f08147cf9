// Package alert tells people of events by webhook: what an event says, how it is signed, and one call to a channel.
//
// Its promise: [Sender.Send] makes one request and says whether it was taken (a 2xx answer). It follows no redirect
// to another host, reads only the beginning of an answer, gives up after ten seconds, and neither its errors nor a
// printed [Channel] hold the secret, the path or the query of the URL: those of many services are secrets.
//
// Each event has one id, which stays the same however often it is sent: a receiver tells repetitions by it. Queueing,
// repeating and giving up are package jobs' business.
package alert
