// SPDX-License-Identifier: Apache-2.0
//
// What a request in HTTP asks of a store, and what it is answered.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "apistore/store.h"

namespace devmgr::apistore {

enum class Verb {
  kGet,
  kList,
  kWatch,
  kCreate,
  kUpdate,
  kPatch,
  kDelete,
  kDeleteCollection,
};
/// `deletecollection`, as roles name it.
std::string_view VerbName(Verb verb);

/// A request about objects.
struct ApiRequest {
  Verb verb = Verb::kGet;
  Target target;
  std::string subresource;  ///< `status` or empty.
  std::map<std::string, std::string> query;

  /// Empty for parameters that it lacks.
  std::string Parameter(const std::string& name) const;
};

/// From method, path and query. 404 for paths and types that are not served,
/// 405 for methods that a path does not have.
std::variant<ApiError, ApiRequest> ReadApiRequest(const Store& store,
                                                  std::string_view method,
                                                  std::string_view target);

struct ApiBody {
  std::string_view content_type;
  std::string_view text;
};

/// Whether JSON may be answered: 406 otherwise.
std::optional<ApiError> CheckAccept(std::string_view accept);

/// What a client may see and do, where it may not do everything.
struct ClientRules {
  Visibility visible;   ///< Others are not listed, watched or deleted together.
  Authorize authorize;  ///< Of writes and deletes.
  /// Of a status only this field is taken; empty for all of it.
  std::string only_status_field;
};

/// Answers all verbs but kWatch. `now`: seconds since 1970.
Answer ServeRequest(Store& store, const ApiRequest& request,
                    const ApiBody& body, std::int64_t now,
                    const ClientRules& rules = {});

/// Of a kWatch.
WatchOptions WatchOptionsOf(const ApiRequest& request);

/// The media type of a `Content-Type`, without its parameters.
std::string_view MediaType(std::string_view content_type);

// How an answer is sent.
std::vector<std::pair<std::string, std::string>> HeadersOf(
    const Answer& answer);
/// Texts go as text, all else as JSON.
std::string BodyOf(const Answer& answer);
/// For what an HTTP server refuses before it is a request.
Answer EarlyRefusal(int status, std::string_view text);
/// After how many seconds the watch is to end, a day at most, so that they can
/// be counted in any unit; nothing when it is not said.
std::optional<std::int64_t> WatchTimeoutOf(const ApiRequest& request);

/// Discovery, `/version` and `/healthz` with its kin; nothing for other paths.
/// A body that is a text is to be sent as text.
std::optional<Answer> Discover(const Store& store, std::string_view target,
                               std::string_view git_version);

}  // namespace devmgr::apistore
