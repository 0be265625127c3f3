// SPDX-License-Identifier: Apache-2.0
//
// What a request in HTTP asks of a store, and what it is answered.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

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

/// Answers all verbs but kWatch. `now`: seconds since 1970.
Answer ServeRequest(Store& store, const ApiRequest& request,
                    const ApiBody& body, std::int64_t now);

/// Of a kWatch.
WatchOptions WatchOptionsOf(const ApiRequest& request);
/// After how many seconds the watch is to end; nothing when it is not said.
std::optional<std::int64_t> WatchTimeoutOf(const ApiRequest& request);

/// Discovery, `/version` and `/healthz` with its kin; nothing for other paths.
/// A body that is a text is to be sent as text.
std::optional<Answer> Discover(const Store& store, std::string_view target,
                               std::string_view git_version);

}  // namespace devmgr::apistore
