// Package browsertest looks at the pages in a real browser, for what only a browser can tell: whether the policy blocks
// something of our own, contrast, widths, what a live update does to the reader's place.
//
// It holds tests, and the program that makes the pictures of the docs, and is a module of its own, so that who imports pawl doesn't have a browser's protocol among their
// modules.
package browsertest
