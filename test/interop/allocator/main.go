// SPDX-License-Identifier: Apache-2.0
//
// Worlds by chance, and what Kubernetes' own allocator makes of them, for
// allocator_test.py: one JSON object a line, in the form of World. With -in,
// worlds come from stdin instead, and are answered in that form.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
)

func write(out *bufio.Writer, w *World) {
	line, err := json.Marshal(w)
	if err != nil {
		panic(err)
	}
	out.Write(line)
	out.WriteByte('\n')
}

func answerStdin(out *bufio.Writer) {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<26)
	for in.Scan() {
		w := &World{}
		if err := json.Unmarshal(in.Bytes(), w); err != nil {
			panic(err)
		}
		judge(w)
		write(out, w)
		out.Flush()
	}
}

func main() {
	seed := flag.Uint64("seed", 1, "of the worlds")
	first := flag.Uint64("first", 0, "index of the first world")
	count := flag.Uint64("count", 1000, "worlds")
	decide := flag.Uint64("decide", 0, "ask of every such world which rules decide it")
	stdin := flag.Bool("in", false, "worlds come from stdin")
	names := flag.Bool("rules", false, "print the names of the rules")
	bench := flag.Bool("bench", false, "print how long shapes of worlds take")
	only := flag.String("only", "", "how the names of these shapes begin")
	flag.Parse()
	out := bufio.NewWriterSize(os.Stdout, 1<<16)
	defer out.Flush()
	switch {
	case *stdin:
		answerStdin(out)
		return
	case *names:
		for _, rule := range rules {
			fmt.Fprintln(out, rule.name)
		}
		return
	case *bench:
		benchmark(out, *only)
		return
	}
	for index := *first; index < *first+*count; index++ {
		w := generate(*seed, index)
		judge(w)
		if *decide > 0 && index%*decide == 0 {
			w.Decides = deciding(w)
		}
		write(out, w)
	}
	if err := out.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
