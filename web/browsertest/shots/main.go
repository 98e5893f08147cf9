// Command shots makes the pictures of docs/img from a real run: pawl demo, whose workers are killed and stopped as it
// says, and Chromium. Run it by make screenshots.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

const width = 1280

// picture is a page, and how much of it is shown. A page without an address is the one that a link of the page before leads to.
type picture struct {
	name, at, link string
	height         int64
}

var pictures = []picture{
	{name: "overview", at: "", height: 1000},
	{name: "lock", at: "ui/locks/job:settlement", height: 900},
	{name: "job", at: "ui/jobs/settlement", height: 860},
	{name: "run", at: "ui/jobs/settlement", link: `a[href*="/ui/runs/"]`, height: 900},
}

func main() {
	out := flag.String("out", "../../docs/img", "where the pictures go")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *out, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "shots:", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

func run(ctx context.Context, out string, say io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "pawl-shots-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // who is root starts Postgres as another user, who has to get in
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	pawl := filepath.Join(dir, "pawl")
	build := exec.CommandContext(ctx, "go", "build", "-o", pawl, "./cmd/pawl")
	build.Dir = "../.." // another module, with more dependencies than this one
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build pawl: %w", err)
	}
	return withDemo(ctx, pawl, dir, say, func(url string) error { return shootAll(ctx, url, dir, out, say) })
}

var served = regexp.MustCompile(`^The page is at (http://\S+/)`)

// withDemo lets the demo tell its story, and calls fn while it serves the page.
func withDemo(ctx context.Context, pawl, dir string, say io.Writer, fn func(url string) error) error {
	cmd := exec.CommandContext(ctx, pawl, "demo", "--data-dir", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	cmd.Stderr = os.Stderr
	text, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(text)
	failed := errors.New("the demo ended before its page was there")
	for lines.Scan() {
		_, _ = fmt.Fprintln(say, lines.Text())
		if m := served.FindStringSubmatch(lines.Text()); m != nil {
			failed = fn(m[1])
			break
		}
	}
	_ = cmd.Process.Signal(os.Interrupt)
	_, _ = io.Copy(io.Discard, text)
	_ = cmd.Wait() // it says that it was interrupted
	return failed
}

func shootAll(ctx context.Context, url, dir, out string, say io.Writer) error {
	bin, err := exec.LookPath("chromium")
	if err != nil {
		return fmt.Errorf("chromium is missing: install it (Debian: apt-get install chromium): %w", err)
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(bin), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("hide-scrollbars", true), chromedp.UserDataDir(filepath.Join(dir, "chromium")))
	alloc, stop := chromedp.NewExecAllocator(ctx, opts...)
	defer stop()
	tab, closeTab := chromedp.NewContext(alloc)
	defer closeTab()
	for _, p := range pictures {
		for _, theme := range []string{"light", "dark"} {
			png, err := shoot(tab, url, p, theme)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			file := filepath.Join(out, p.name+"-"+theme+".png")
			if err := small(file, png); err != nil {
				return err
			}
			_, _ = fmt.Fprintln(say, file)
		}
	}
	return nil
}

func shoot(ctx context.Context, url string, p picture, theme string) ([]byte, error) {
	steps := []chromedp.Action[chromedp.Void]{
		chromedp.EmulateViewport(width, p.height), prefer(theme),
		chromedp.Navigate(url + p.at), chromedp.WaitReady(chromedp.CSS("#main")),
	}
	if err := chromedp.Do(ctx, steps...); err != nil {
		return nil, err
	}
	if p.link != "" {
		if _, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(p.link))); err != nil {
			return nil, err
		}
	}
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`document.fonts.ready.then(() => true)`, chromedp.EvalAwaitPromise)); err != nil {
		return nil, err
	}
	return chromedp.Run(ctx, chromedp.CaptureScreenshot())
}

// prefer is what the reader's system prefers.
func prefer(theme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
		})
		return err
	})
}
