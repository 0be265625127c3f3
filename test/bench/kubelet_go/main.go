// SPDX-License-Identifier: Apache-2.0

// The kubelet's own managers, pkg/kubelet/cm/dra and pkg/kubelet/cm/devicemanager,
// in this process, on a disk, with a driver and a plugin behind real sockets: how
// long they take for what our benchmarks measure. Each figure is a line of JSON
// and has the name of our row that it belongs to.
//
//	kubelet_go --folder DIR [--only restart|life] [--brief]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"runtime"
	"slices"
	"time"

	"k8s.io/klog/v2"
	kubeletmetrics "k8s.io/kubernetes/pkg/kubelet/metrics"
)

const (
	// patience is how long a loop of measurements, or a wait, may take.
	patience = 20 * time.Second
	// lives is how many pods come and go.
	lives = 300
)

// report prints figures. In a brief run it only has to be shown that all of it
// runs.
type report struct{ brief bool }

// count is how many measurements there are to be.
func (r report) count(full, brief int) int {
	if r.brief {
		return brief
	}
	return full
}

// add prints the median.
func (r report) add(name, unit string, samples []time.Duration) {
	slices.Sort(samples)
	median := samples[int(math.Round(0.5*float64(len(samples)-1)))]
	scale := float64(time.Microsecond)
	if unit == "ms" {
		scale = float64(time.Millisecond)
	}
	line, err := json.Marshal(struct {
		Name  string  `json:"name"`
		Unit  string  `json:"unit"`
		Value float64 `json:"value"`
	}{name, unit, float64(median) / scale})
	must(err)
	fmt.Println(string(line))
}

// must ends the program: nothing was measured.
func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func mustGet[T any](value T, err error) T {
	must(err)
	return value
}

func timeOf(work func()) time.Duration {
	begin := time.Now()
	work()
	return time.Since(begin)
}

// timesOf is how long each of `count` rounds of `work` took. What was left behind
// by the round before, as by the process before, is collected outside.
func timesOf(count int, work, after func()) []time.Duration {
	var times []time.Duration
	for end := time.Now().Add(patience); len(times) < count && time.Now().Before(end); {
		runtime.GC()
		times = append(times, timeOf(work))
		after()
	}
	return times
}

func waitFor(what string, condition func() bool) {
	for end := time.Now().Add(patience); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			log.Fatal(what)
		}
	}
}

func main() {
	folder := flag.String("folder", "", "where the managers keep their files; a new folder below it is removed at the end")
	only := flag.String("only", "", "these figures: restart or life")
	brief := flag.Bool("brief", false, "figures that prove nothing, quickly")
	flag.Parse()
	if flag.NArg() > 0 || *folder == "" || !slices.Contains([]string{"", "restart", "life"}, *only) {
		flag.Usage()
		os.Exit(2)
	}
	// The kubelet's log at its lowest level is written, but to nowhere.
	logging := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(logging)
	must(logging.Parse([]string{"--logtostderr=false", "--stderrthreshold=FATAL"}))
	klog.SetOutput(io.Discard)
	kubeletmetrics.Register()

	below := mustGet(os.MkdirTemp(*folder, "k-"))
	defer os.RemoveAll(below)
	r := report{brief: *brief}
	if *only != "life" {
		restartClaims(r, below, 110, 1)
		restartClaims(r, below, 1000, 10)
		restartDevices(r, below, 110)
	}
	if *only != "restart" {
		bareThings(r, below)
		liveWithDevices(r, below, 10)
		liveWithDevices(r, below, 1000)
		liveWithClaims(r, below, 10)
		liveWithClaims(r, below, 1000)
	}
}
