// Package nearest finds what a word that nobody knows was meant to be. It promises a guess or none, never one that is
// quite another word.
package nearest
