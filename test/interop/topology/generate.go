// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
)

// providers is how many have hints at most.
const providers = 4

// combinations is how many of them the kubelet walks for one request at most.
const combinations = 20000

func pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// maskBits are of a random set of nodes; now and then of one that the machine has not.
func maskBits(r *rand.Rand, nodes []int) uint64 {
	var mask uint64
	share := 1 + r.IntN(3)
	for _, node := range nodes {
		if r.IntN(4) < share {
			mask |= 1 << node
		}
	}
	if r.IntN(40) == 0 {
		mask |= 1 << 40
	}
	return mask
}

func hint(r *rand.Rand, nodes []int, preferred int) Hint {
	if r.IntN(25) == 0 {
		return Hint{nil, r.IntN(2) == 0}
	}
	mask := maskBits(r, nodes)
	return Hint{&mask, r.IntN(100) < preferred}
}

// asOfDevices are the hints that a device plugin would have: all sets of as many
// nodes at least, of which the smallest are preferred.
func asOfDevices(r *rand.Rand, nodes []int) []Hint {
	hints := []Hint{}
	with := nodes[:1+r.IntN(len(nodes))]
	least := 1 + r.IntN(len(with))
	preferred := r.IntN(4) != 0
	for set := uint64(1); set < 1<<len(with); set++ {
		var mask uint64
		count := 0
		for i, node := range with {
			if set>>i&1 != 0 {
				mask |= 1 << node
				count++
			}
		}
		if count >= least {
			hints = append(hints, Hint{&mask, preferred && count == least})
		}
	}
	return hints
}

func list(r *rand.Rand, nodes []int, room int) []Hint {
	switch r.IntN(20) {
	case 0:
		return nil
	case 1:
		return []Hint{}
	}
	if hints := asOfDevices(r, nodes); r.IntN(3) == 0 && len(hints) <= room {
		return hints
	}
	hints := []Hint{}
	preferred := pick(r, 0, 30, 100)
	for range 1 + r.IntN(min(room, 12)) {
		hints = append(hints, hint(r, nodes, preferred))
	}
	return hints
}

func request(r *rand.Rand, nodes []int) []List {
	lists := []List{}
	room := combinations
	for number := range r.IntN(5) {
		one := List{r.IntN(providers), fmt.Sprintf("r%d", number), list(r, nodes, room)}
		lists = append(lists, one)
		room = max(1, room/max(1, len(one.Hints)))
	}
	return lists
}

func generate(seed, index uint64) *Case {
	r := rand.New(rand.NewPCG(seed, index))
	c := &Case{ID: index}
	count := 1 + r.IntN(8)
	gaps := r.IntN(4) == 0
	for node := 0; len(c.Nodes) < count; node++ {
		if !gaps || r.IntN(3) != 0 {
			c.Nodes = append(c.Nodes, node)
		}
	}
	for i := range c.Nodes {
		var row []uint64
		for j := range c.Nodes {
			switch {
			case i == j:
				row = append(row, 10)
			case i/2 == j/2:
				row = append(row, 11)
			default:
				row = append(row, 12+uint64(r.IntN(2)))
			}
		}
		c.Distances = append(c.Distances, row)
	}
	c.Policy = pick(r, "best-effort", "restricted", "single-numa-node")
	c.Scope = pick(r, "container", "pod")
	c.Closest = r.IntN(2) == 0
	for number := range 1 + r.IntN(3) {
		c.Containers = append(c.Containers, fmt.Sprintf("c%d", number))
		if c.Scope == "container" || number == 0 {
			c.Requests = append(c.Requests, request(r, c.Nodes))
		}
	}
	return c
}
