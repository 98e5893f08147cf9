// Package bench measures what pawl costs, as ratios to a floor that is measured in the same run: pairs in random order, on
// a server that flushes its commits to a disk. The median of nine pairs is the figure, the smallest and the largest show
// how noisy the machine was. It is for make bench; no test depends on a time. The one test holds what is read of a long
// history against bounds.
package bench
