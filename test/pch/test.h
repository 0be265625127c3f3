// SPDX-License-Identifier: Apache-2.0
//
// lib/pch/room.h for the tests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../../lib/pch/room.h"
