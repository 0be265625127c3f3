// SPDX-License-Identifier: Apache-2.0

// Names the programs that run.sh builds, for `go mod tidy`.

//go:build tools

package tools

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
)
