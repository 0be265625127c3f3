// SPDX-License-Identifier: Apache-2.0
//
// Between what a store answers, HTTP, and statuses.
#pragma once

#include <absl/status/status.h>
#include <devmgr/testing_api_server.h>

#include <string_view>

#include "apistore/answer.h"
#include "http/server.h"

namespace devmgr::testing {

/// What a fault of the kinds kFail and kErrorEvent answers.
apistore::ApiError ErrorOf(const ApiFault& fault);
/// Texts go as text, all else as JSON.
http::Response ResponseOf(const apistore::Answer& answer);
/// For what no handler has seen.
http::Response RefusalOf(int status, std::string_view text);
/// Of a refusal.
absl::Status StatusOf(const apistore::Answer& answer);

}  // namespace devmgr::testing
