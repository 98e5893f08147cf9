// Command leader shows one active instance of a loop: several processes elect one, which leads until it resigns, dies or
// loses its lease. It promises that the loop's steps are in the order of the leaders' tokens, and none is done by a leader that
// has been succeeded, whoever is killed or paused.
package main
