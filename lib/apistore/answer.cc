// SPDX-License-Identifier: Apache-2.0
#include "apistore/answer.h"

#include <fmt/core.h>

#include <utility>

namespace devmgr::apistore {
namespace {

ApiError Make(int code, const char* reason, std::string message) {
  ApiError error;
  error.code = code;
  error.reason = reason;
  error.message = std::move(message);
  return error;
}

}  // namespace

Json StatusBody(const ApiError& error) {
  Json details = Json::object();
  if (!error.name.empty()) details["name"] = error.name;
  if (!error.group.empty()) details["group"] = error.group;
  if (!error.kind.empty()) details["kind"] = error.kind;
  for (const Cause& cause : error.causes) {
    Json entry = {{"message", cause.message}};
    if (!cause.reason.empty()) entry["reason"] = cause.reason;
    if (!cause.field.empty()) entry["field"] = cause.field;
    details["causes"].push_back(std::move(entry));
  }
  if (error.retry_after_seconds > 0) {
    details["retryAfterSeconds"] = error.retry_after_seconds;
  }
  Json metadata = Json::object();
  if (!error.continue_token.empty()) {
    metadata["continue"] = error.continue_token;
  }
  Json body = {{"kind", "Status"},         {"apiVersion", "v1"},
               {"metadata", metadata},     {"status", "Failure"},
               {"message", error.message}, {"reason", error.reason},
               {"code", error.code}};
  if (!details.empty()) body["details"] = std::move(details);
  return body;
}

Answer Refuse(const ApiError& error) {
  Answer answer;
  answer.code = error.code;
  answer.body = StatusBody(error);
  // A retry hint of a Status is a header for these only.
  if (error.code == 429 || error.code == 503) {
    answer.retry_after_seconds = error.retry_after_seconds;
  }
  return answer;
}

ApiError BadRequest(std::string message) {
  return Make(400, "BadRequest", std::move(message));
}

ApiError Unauthorized() { return Make(401, "Unauthorized", "Unauthorized"); }

ApiError Forbidden(std::string message) {
  return Make(403, "Forbidden", std::move(message));
}

ApiError PathNotFound() {
  return Make(404, "NotFound",
              "the server could not find the requested resource");
}

ApiError MethodNotAllowed(std::string message) {
  return Make(405, "MethodNotAllowed", std::move(message));
}

ApiError TooLarge(std::string message) {
  return Make(413, "RequestEntityTooLarge", std::move(message));
}

ApiError UnsupportedMediaType(std::string message) {
  return Make(415, "UnsupportedMediaType", std::move(message));
}

ApiError NotAcceptable(std::string message) {
  return Make(406, "NotAcceptable", std::move(message));
}

ApiError Expired(std::string message) {
  return Make(410, "Expired", std::move(message));
}

ApiError TooManyRequests(int retry_after_seconds) {
  ApiError error = Make(429, "TooManyRequests",
                        "Too many requests, please try again later.");
  error.retry_after_seconds = retry_after_seconds;
  return error;
}

ApiError Unavailable(std::string message, int retry_after_seconds) {
  ApiError error = Make(503, "ServiceUnavailable", std::move(message));
  error.retry_after_seconds = retry_after_seconds;
  return error;
}

ApiError InternalError(std::string message) {
  return Make(500, "InternalError", std::move(message));
}

ApiError InvalidOptions(std::string_view kind, std::vector<Cause> causes) {
  std::string texts;
  for (const Cause& cause : causes) {
    texts += fmt::format("{}{}: {}", texts.empty() ? "" : ", ", cause.field,
                         cause.message);
  }
  ApiError error =
      Make(422, "Invalid",
           fmt::format("{}.meta.k8s.io \"\" is invalid: {}", kind, texts));
  error.group = "meta.k8s.io";
  error.kind = kind;
  error.causes = std::move(causes);
  return error;
}

ApiError VersionTooLarge(std::string_view wanted, std::string_view current) {
  ApiError error =
      Make(504, "Timeout",
           fmt::format("Too large resource version: {}, current: {}", wanted,
                       current));
  error.causes = {
      {"ResourceVersionTooLarge", "Too large resource version", ""}};
  error.retry_after_seconds = 1;
  return error;
}

Cause RequiredField(std::string field, std::string_view detail) {
  return {"FieldValueRequired",
          detail.empty() ? std::string("Required value")
                         : fmt::format("Required value: {}", detail),
          std::move(field)};
}

Cause ForbiddenField(std::string field, std::string_view detail) {
  return {"FieldValueForbidden", fmt::format("Forbidden: {}", detail),
          std::move(field)};
}

Cause InvalidField(std::string field, const Json& value,
                   std::string_view detail) {
  const std::string text =
      value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return {"FieldValueInvalid",
          fmt::format("Invalid value: {}: {}", text, detail), std::move(field)};
}

}  // namespace devmgr::apistore
