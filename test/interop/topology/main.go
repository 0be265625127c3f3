// SPDX-License-Identifier: Apache-2.0
//
// Hints by chance, and what the kubelet's own topology manager,
// pkg/kubelet/cm/topologymanager, makes of them, for topology_test.py: one JSON
// object a line, in the form of Case. With -bench, hints as device plugins have
// them on machines of several sizes, and how long a merge takes there.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"

	cadvisorapi "github.com/google/cadvisor/lib/model"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager/bitmask"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

// Hint is any number of nodes by their bits, or any node at all.
type Hint struct {
	Nodes     *uint64 `json:"nodes"`
	Preferred bool    `json:"preferred"`
}

// List is what a provider has for one resource. No list is no opinion.
type List struct {
	Provider int    `json:"provider"`
	Resource string `json:"resource"`
	Hints    []Hint `json:"hints"`
}

// Aligned is what the lists of one container, or of the pod, come to.
type Aligned struct {
	Hint     Hint `json:"hint"`
	Admitted bool `json:"admitted"`
}

// Answer is of the merge of each request alone, and of the pod.
type Answer struct {
	Merged   []Aligned       `json:"merged"`
	Admitted bool            `json:"admitted"`
	Reason   string          `json:"reason"`
	Message  string          `json:"message"`
	Affinity map[string]Hint `json:"affinity"`
}

// Case is a machine, a configuration, and a pod with its hints: a request per
// container, or a single one under the scope pod.
type Case struct {
	ID         uint64     `json:"id"`
	Nodes      []int      `json:"nodes"`
	Distances  [][]uint64 `json:"distances"`
	Policy     string     `json:"policy"`
	Scope      string     `json:"scope"`
	Closest    bool       `json:"closest"`
	Containers []string   `json:"containers"`
	Requests   [][]List   `json:"requests"`
	Expect     *Answer    `json:"expect,omitempty"`
	Name       string     `json:"name,omitempty"`
	Times      float64    `json:"nanoseconds,omitempty"`
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func maskOf(bits uint64) bitmask.BitMask {
	mask := bitmask.NewEmptyBitMask()
	for node := 0; node < 64; node++ {
		if bits>>node&1 != 0 {
			must(mask.Add(node))
		}
	}
	return mask
}

func hintOf(hint topologymanager.TopologyHint) Hint {
	if hint.NUMANodeAffinity == nil {
		return Hint{nil, hint.Preferred}
	}
	var bits uint64
	for _, node := range hint.NUMANodeAffinity.GetBits() {
		bits |= 1 << node
	}
	return Hint{&bits, hint.Preferred}
}

// officialHints are those of one provider.
func officialHints(lists []List, provider int) map[string][]topologymanager.TopologyHint {
	hints := map[string][]topologymanager.TopologyHint{}
	for _, list := range lists {
		if list.Provider != provider {
			continue
		}
		if list.Hints == nil {
			hints[list.Resource] = nil
			continue
		}
		official := []topologymanager.TopologyHint{}
		for _, hint := range list.Hints {
			one := topologymanager.TopologyHint{Preferred: hint.Preferred}
			if hint.Nodes != nil {
				one.NUMANodeAffinity = maskOf(*hint.Nodes)
			}
			official = append(official, one)
		}
		hints[list.Resource] = official
	}
	return hints
}

func allHints(lists []List) []map[string][]topologymanager.TopologyHint {
	var all []map[string][]topologymanager.TopologyHint
	for provider := range providers {
		all = append(all, officialHints(lists, provider))
	}
	return all
}

// provider answers as the case says.
type provider struct {
	number int
	c      *Case
}

func (p provider) request(container string) []List {
	for i, name := range p.c.Containers {
		if name == container {
			return p.c.Requests[i]
		}
	}
	panic(container)
}

func (p provider) GetTopologyHints(_ klog.Logger, _ *v1.Pod, container *v1.Container, _ lifecycle.Operation) map[string][]topologymanager.TopologyHint {
	return officialHints(p.request(container.Name), p.number)
}

func (p provider) GetPodTopologyHints(klog.Logger, *v1.Pod, lifecycle.Operation) map[string][]topologymanager.TopologyHint {
	return officialHints(p.c.Requests[0], p.number)
}

func (p provider) AllocatePod(klog.Logger, *v1.Pod, lifecycle.Operation) error { return nil }

func (p provider) Allocate(context.Context, *v1.Pod, *v1.Container, lifecycle.Operation) error {
	return nil
}

// managerOf is the topology manager of the machine.
func managerOf(c *Case) topologymanager.Manager {
	var topology []cadvisorapi.Node
	for i, node := range c.Nodes {
		// The manager finds a distance by the number of the node.
		row := make([]uint64, c.Nodes[len(c.Nodes)-1]+1)
		for j, other := range c.Nodes {
			row[other] = c.Distances[i][j]
		}
		topology = append(topology, cadvisorapi.Node{Id: node, Distances: row})
	}
	options := map[string]string{
		"prefer-closest-numa-nodes": fmt.Sprint(c.Closest),
		"max-allowable-numa-nodes":  "64",
	}
	manager, err := topologymanager.NewManager(klog.Background(), topology, c.Policy, c.Scope, options)
	must(err)
	return manager
}

func judge(c *Case) {
	manager := managerOf(c)
	answer := &Answer{Affinity: map[string]Hint{}}
	for _, lists := range c.Requests {
		hint, admitted := manager.GetPolicy().Merge(klog.Background(), allHints(lists))
		answer.Merged = append(answer.Merged, Aligned{hintOf(hint), admitted})
	}
	pod := &v1.Pod{}
	pod.UID = types.UID("u")
	for _, name := range c.Containers {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: name})
	}
	for number := range providers {
		manager.AddHintProvider(klog.Background(), provider{number, c})
	}
	result := manager.Admit(context.Background(), &lifecycle.PodAdmitAttributes{Pod: pod, Operation: lifecycle.AddOperation})
	answer.Admitted, answer.Reason, answer.Message = result.Admit, result.Reason, result.Message
	if result.Admit {
		for _, name := range c.Containers {
			answer.Affinity[name] = hintOf(manager.GetAffinity(klog.Background(), "u", name))
		}
	}
	c.Expect = answer
}

func write(out *bufio.Writer, c *Case) {
	line, err := json.Marshal(c)
	must(err)
	out.Write(line)
	must(out.WriteByte('\n'))
}

func main() {
	seed := flag.Uint64("seed", 1, "of the cases")
	first := flag.Uint64("first", 0, "index of the first case")
	count := flag.Uint64("count", 1000, "cases")
	bench := flag.Bool("bench", false, "print how long merges take")
	flag.Parse()
	logging := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(logging)
	must(logging.Parse([]string{"--logtostderr=false", "--stderrthreshold=FATAL"}))
	klog.SetOutput(io.Discard)
	out := bufio.NewWriterSize(os.Stdout, 1<<16)
	if *bench {
		benchmark(out)
	} else {
		for index := *first; index < *first+*count; index++ {
			c := generate(*seed, index)
			judge(c)
			write(out, c)
		}
	}
	must(out.Flush())
}
