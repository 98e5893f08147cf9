// Command stock sells what there is of a few items to many buyers, in three ways side by side: with a lock alone, which oversells
// under one pause; with a conditional update; and by reservation, payment through the outbox, and compensation. It promises that
// the latter two sell each unit once, and charge each paid order once, whoever is killed or paused.
package main
