// SPDX-License-Identifier: Apache-2.0

// Names the programs that run.sh builds, for `go mod tidy`.

//go:build tools

package tools

import _ "go.etcd.io/etcd/server/v3"
