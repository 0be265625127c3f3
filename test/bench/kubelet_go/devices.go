// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"
	_ "unsafe" // For go:linkname.

	cadvisorapi "github.com/google/cadvisor/lib/model"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/config"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

// newManager is what devicemanager.NewManagerImpl calls with the only path that it
// knows, that of a real node.
//
//go:linkname newManager k8s.io/kubernetes/pkg/kubelet/cm/devicemanager.newManagerImpl
func newManager(logger klog.Logger, socket string, topology []cadvisorapi.Node,
	affinity topologymanager.Store) (*devicemanager.ManagerImpl, error)

// deviceNode is a node with a devicemanager.ManagerImpl.
type deviceNode struct {
	folder  string
	active  []*v1.Pod
	manager *devicemanager.ManagerImpl
	plugin  *plugin
}

func newDeviceNode(below string) *deviceNode {
	return &deviceNode{folder: mustGet(os.MkdirTemp(below, "dp-"))}
}

func (n *deviceNode) socket() string { return filepath.Join(n.folder, "kubelet.sock") }

func (n *deviceNode) open() {
	logger := klog.Background()
	n.manager = mustGet(newManager(logger, n.socket(), nil, topologymanager.NewFakeManager(logger)))
	ready := config.NewSourcesReady(func(sets.Set[string]) bool { return true })
	must(n.manager.Start(logger, func() []*v1.Pod { return n.active }, ready, containermap.NewContainerMap(), sets.New[string]()))
}

// startPlugin returns once all devices of the new plugin count.
func (n *deviceNode) startPlugin(devices int) {
	n.plugin = startPlugin(n.folder, n.socket(), devices)
	waitFor("no plugin", func() bool {
		_, allocatable, _ := n.manager.GetCapacity(klog.Background())
		count := allocatable[resourceName]
		return count.Value() == int64(devices)
	})
}

// close is the end of the process.
func (n *deviceNode) close() { must(n.manager.Stop(klog.Background())) }

func (n *deviceNode) end() {
	n.plugin.stop()
	must(os.RemoveAll(n.folder))
}

func podWithDevice(name string) *v1.Pod {
	pod := podOfOneContainer(name)
	pod.Spec.Containers[0].Resources.Limits = v1.ResourceList{resourceName: resource.MustParse("1")}
	return pod
}

func (n *deviceNode) admit(pod *v1.Pod) {
	must(n.manager.Allocate(context.Background(), pod, &pod.Spec.Containers[0], lifecycle.AddOperation))
}

func (n *deviceNode) resolve(pod *v1.Pod) {
	options := mustGet(n.manager.GetDeviceRunContainerOptions(context.Background(), pod, &pod.Spec.Containers[0]))
	if options == nil || len(options.Devices) != 1 {
		log.Fatal("the pod has no device")
	}
}

// fill admits pods that stay.
func (n *deviceNode) fill(pods int) {
	for i := range pods {
		pod := podWithDevice(fmt.Sprintf("staying-%d", i))
		n.active = append(n.active, pod)
		n.admit(pod)
	}
}

func restartDevices(r report, below string, pods int) {
	node := newDeviceNode(below)
	defer node.end()
	node.open()
	node.startPlugin(pods)
	node.fill(pods)
	node.close()
	r.add(fmt.Sprintf("restart, %d pods with a plugin's device, until resolve answers", pods), "ms",
		timesOf(r.count(30, 3), func() {
			node.open()
			node.resolve(node.active[pods-1])
		}, node.close))
}

func liveWithDevices(r report, below string, others int) {
	node := newDeviceNode(below)
	defer node.end()
	node.open()
	defer node.close()
	node.startPlugin(others + 1)
	node.fill(others)
	staying := node.active
	var starts, ends []time.Duration
	count := r.count(lives, 20)
	for end := time.Now().Add(patience); len(starts) < count && time.Now().Before(end); {
		pod := podWithDevice(fmt.Sprintf("p%d", len(starts)))
		node.active = append(staying[:others:others], pod)
		starts = append(starts, timeOf(func() {
			node.admit(pod)
			node.resolve(pod)
		}))
		// A pod ends by being gone when this is called next, which each Allocate
		// does, too. It writes nothing.
		node.active = staying
		ends = append(ends, timeOf(func() { node.manager.UpdateAllocatedDevices(klog.Background()) }))
	}
	of := fmt.Sprintf("a plugin's pod beside %d pods: ", others)
	r.add(of+"until it is Ready", "us", starts)
	r.add(of+"its end", "us", ends)
}
