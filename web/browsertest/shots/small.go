package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"slices"
)

const mostBytes = 200 << 10

// small writes a picture of at most 256 colours: a page has few, and what its letters blend into needs no more.
func small(file string, raw []byte) error {
	img, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	var b bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&b, reduced(img)); err != nil {
		return err
	}
	if b.Len() > mostBytes {
		return fmt.Errorf("%s has %d KB, want at most %d: show less of the page", file, b.Len()>>10, mostBytes>>10)
	}
	return os.WriteFile(file, b.Bytes(), 0o644) //nolint:gosec // a picture for everybody
}

// reduced takes the 256 colours that most points have, and for each other point the nearest of them.
func reduced(img image.Image) *image.Paletted {
	count := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA {
		r, g, b, _ := img.At(x, y).RGBA()
		return color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 0xff} //nolint:gosec // eight bits each
	}
	r := img.Bounds()
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	all := make([]color.RGBA, 0, len(count))
	for c := range count {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b color.RGBA) int {
		if n := count[b] - count[a]; n != 0 {
			return n
		}
		return bytes.Compare([]byte{a.R, a.G, a.B}, []byte{b.R, b.G, b.B})
	})
	palette := make(color.Palette, 0, 256)
	for _, c := range all[:min(256, len(all))] {
		palette = append(palette, c)
	}
	out, index := image.NewPaletted(r, palette), map[color.RGBA]uint8{}
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			c := at(x, y)
			i, ok := index[c]
			if !ok {
				i = uint8(palette.Index(c)) //nolint:gosec // one of 256
				index[c] = i
			}
			out.SetColorIndex(x, y, i)
		}
	}
	return out
}
