// SPDX-License-Identifier: Apache-2.0
//
// What an API server answers: an object, a list, or a Status that says why not.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr::apistore {

using Json = nlohmann::json;

/// One reason of an error, as `details.causes` lists them.
struct Cause {
  std::string reason;  ///< `FieldValueInvalid`, `ResourceVersionTooLarge`, ...
  std::string message;
  std::string field;  ///< `spec.devices[0].name`; empty for none.
};

/// A refusal, with all that its Status says.
struct ApiError {
  int code = 500;
  std::string reason;
  std::string message;
  // What the request was about; empty when it was about no object.
  std::string name;
  std::string group;
  std::string kind;
  std::vector<Cause> causes;
  int retry_after_seconds = 0;
  /// With code 410 on a chunked list: where an inconsistent rest begins.
  std::string continue_token;
};

/// The Status object of a refusal.
Json StatusBody(const ApiError& error);

struct Answer {
  int code = 200;
  Json body;
  int retry_after_seconds = 0;        ///< The header `Retry-After`; 0 for none.
  std::vector<std::string> warnings;  ///< Headers `Warning`.

  bool ok() const { return code < 400; }
};

Answer Refuse(const ApiError& error);

// Refusals that are about no object of a type.
ApiError BadRequest(std::string message);
ApiError Unauthorized();
ApiError Forbidden(std::string message);
/// A path that is not served.
ApiError PathNotFound();
ApiError MethodNotAllowed(std::string message);
ApiError TooLarge(std::string message);
ApiError UnsupportedMediaType(std::string message);
ApiError NotAcceptable(std::string message);
ApiError Expired(std::string message);
ApiError TooManyRequests(int retry_after_seconds);
ApiError Unavailable(std::string message, int retry_after_seconds);
ApiError InternalError(std::string message);
/// Options of a request that contradict each other: 422, of the kind `kind`.
ApiError InvalidOptions(std::string_view kind, std::vector<Cause> causes);
/// The version that was asked for is above the one that the store has.
ApiError VersionTooLarge(std::string_view wanted, std::string_view current);

// Causes, with the texts of upstream's field errors.
Cause RequiredField(std::string field, std::string_view detail);
Cause ForbiddenField(std::string field, std::string_view detail);
Cause InvalidField(std::string field, const Json& value,
                   std::string_view detail);

}  // namespace devmgr::apistore
