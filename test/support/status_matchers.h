// SPDX-License-Identifier: Apache-2.0
//
// Matchers for absl::Status and absl::StatusOr.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <gmock/gmock.h>

#include "common/status.h"

namespace devmgr {

inline const absl::Status& StatusOf(const absl::Status& status) {
  return status;
}
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& value) {
  return value.status();
}

MATCHER(IsOk, negation ? "is not OK" : "is OK") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

/// `StatusIs(absl::StatusCode::kNotFound)`
MATCHER_P(StatusIs, code, "has the code " + absl::StatusCodeToString(code)) {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).code() == code;
}

/// `StatusIs(absl::StatusCode::kNotFound, HasSubstr("pod 'a/b'"))`
MATCHER_P2(StatusIs, code, message,
           "has the code " + absl::StatusCodeToString(code) +
               " and a message that fits") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).code() == code &&
         ::testing::ExplainMatchResult(message, MessageOf(StatusOf(arg)),
                                       result_listener);
}

}  // namespace devmgr
