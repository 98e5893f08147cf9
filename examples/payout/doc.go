// Command payout pays merchants through a provider that knows no tokens, and shows that each is paid once.
//
// It promises, and checks at its end:
//   - What the provider has paid each merchant is what is owed, to the cent, though workers were killed and stopped with their
//     calls under way, and one reply in five was lost.
//   - A key that the provider has declined for good is not used again; the next try has one of its own.
//   - With -broken the fencing token is a part of the key, as it must not be: then it pays twice, and says so.
package main
