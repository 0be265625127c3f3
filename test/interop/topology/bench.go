// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"math/bits"
	"testing"

	"k8s.io/klog/v2"
)

// sets are the hints for `least` devices where each node has one, `free` of
// which are so: all sets that suffice, or beyond 8 nodes those of `least` nodes,
// at most 1,024 of them, and all nodes.
func sets(nodes, least int, preferred bool) []Hint {
	hints := []Hint{}
	if nodes <= 8 {
		for set := uint64(1); set < 1<<nodes; set++ {
			if bits.OnesCount64(set) >= least {
				mask := set
				hints = append(hints, Hint{&mask, preferred && bits.OnesCount64(set) == least})
			}
		}
		return hints
	}
	// The next larger number with as many bits.
	for set := uint64(1)<<least - 1; len(hints) < 1024; {
		mask := set
		hints = append(hints, Hint{&mask, preferred})
		low := set & -set
		next := set + low
		if next < set {
			break
		}
		set = next | (set^next)/low>>2
		if nodes < 64 && set>>nodes != 0 {
			break
		}
	}
	all := ^uint64(0) >> (64 - nodes)
	return append(hints, Hint{&all, false})
}

// machine has nodes in groups of four.
func machine(nodes int) *Case {
	c := &Case{Policy: "best-effort", Scope: "pod", Containers: []string{"c"}}
	for i := range nodes {
		c.Nodes = append(c.Nodes, i)
		var row []uint64
		for j := range nodes {
			switch {
			case i == j:
				row = append(row, 10)
			case i/4 == j/4:
				row = append(row, 12)
			default:
				row = append(row, 20)
			}
		}
		c.Distances = append(c.Distances, row)
	}
	return c
}

// shape has four providers. In `agree` there is a set that all prefer; in
// `disagree` others hold devices, and each needs another number.
func shape(nodes int, agree, closest bool) *Case {
	c := machine(nodes)
	c.Closest = closest
	c.Name = fmt.Sprintf("%d nodes, %s", nodes, map[bool]string{true: "agree", false: "disagree"}[agree])
	if closest {
		c.Name += ", closest"
	}
	least := max(1, nodes-2)
	if nodes > 8 {
		least = 2
	}
	var lists []List
	for number := range providers {
		need := least
		if !agree {
			need = max(1, least-number%2)
		}
		lists = append(lists, List{number, "r", sets(nodes, need, agree || number > 0)})
	}
	c.Requests = [][]List{lists}
	return c
}

// benchmark has the kubelet merge up to 8 nodes; beyond it would not end.
func benchmark(out *bufio.Writer) {
	for _, nodes := range []int{2, 3, 4, 5, 6, 7, 8, 16, 34, 64} {
		for _, agree := range []bool{true, false} {
			for _, closest := range []bool{false, true} {
				c := shape(nodes, agree, closest)
				if nodes <= 8 {
					policy := managerOf(c).GetPolicy()
					hints := allHints(c.Requests[0])
					result := testing.Benchmark(func(b *testing.B) {
						for range b.N {
							policy.Merge(klog.Background(), hints)
						}
					})
					c.Times = float64(result.T.Nanoseconds()) / float64(result.N)
				}
				write(out, c)
			}
		}
	}
}
