// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Marks what the shared library shows to the outside; all else is hidden.
#define DEVMGR_EXPORT __attribute__((visibility("default")))
