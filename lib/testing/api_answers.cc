// SPDX-License-Identifier: Apache-2.0
#include "testing/api_answers.h"

#include <string>

#include "apistore/api_request.h"
#include "apistore/object_meta.h"
#include "common/status.h"

namespace devmgr::testing {
namespace {

std::string ReasonOf(int code) {
  switch (code) {
    case 404:
      return "NotFound";
    case 409:
      return "Conflict";
    case 422:
      return "Invalid";
    default:
      return "InternalError";
  }
}

}  // namespace

apistore::ApiError ErrorOf(const ApiFault& fault) {
  const std::string text =
      fault.message.empty() ? "a fault of the scenario" : fault.message;
  switch (fault.code) {
    case 400:
      return apistore::BadRequest(text);
    case 401:
      return apistore::Unauthorized();
    case 403:
      return apistore::Forbidden(text);
    case 410:
      return apistore::Expired(text);
    case 429:
      return apistore::TooManyRequests(fault.retry_after);
    case 503:
      return apistore::Unavailable(text, fault.retry_after);
    case 504:
      return apistore::VersionTooLarge("unknown", "unknown");
    default:
      break;
  }
  apistore::ApiError error;
  error.code = fault.code;
  error.reason = ReasonOf(fault.code);
  error.message = text;
  error.retry_after_seconds = fault.retry_after;
  return error;
}

http::Response ResponseOf(const apistore::Answer& answer) {
  http::Response response;
  response.status = answer.code;
  response.headers = apistore::HeadersOf(answer);
  response.body = apistore::BodyOf(answer);
  return response;
}

http::Response RefusalOf(int status, std::string_view text) {
  return ResponseOf(apistore::EarlyRefusal(status, text));
}

absl::Status StatusOf(const apistore::Answer& answer) {
  const std::string text = apistore::TextField(answer.body, "message");
  switch (answer.code) {
    case 404:
      return NotFoundError("{}", text);
    case 409:
      return FailedPreconditionError("{}", text);
    default:
      return InvalidArgumentError("{}: {}", answer.code, text);
  }
}

}  // namespace devmgr::testing
