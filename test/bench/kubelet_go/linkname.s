// SPDX-License-Identifier: Apache-2.0
//
// Lets devices.go declare a function without its body.
