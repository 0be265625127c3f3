// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/control/v1/control.pb.h>

#include <future>
#include <memory>
#include <string>

#include "rpc/connection.h"
#include "rpc/message.h"
#include "support/mailbox.h"

namespace devmgr {

inline constexpr char kController[] = "/devmgr.control.v1.Controller/";

template <typename Response>
using Answered = std::future<absl::StatusOr<Response>>;

/// Begins a call of `method`, which has its service with it.
template <typename Response>
Answered<Response> BeginCall(rpc::Connection& connection,
                             const std::string& method,
                             const google::protobuf::MessageLite& request) {
  auto answered = std::make_shared<std::promise<absl::StatusOr<Response>>>();
  rpc::Connection::CallOptions options;
  options.timeout = kPatience;
  connection.Call(
      method, rpc::Encode(request), options,
      [answered](const absl::StatusOr<std::string>& answer) {
        answered->set_value(answer.ok()
                                ? rpc::Decode<Response>(*answer)
                                : absl::StatusOr<Response>(answer.status()));
      });
  return answered->get_future();
}

inline control::v1::WantPodRequest WantRequest(const std::string& manifest) {
  control::v1::WantPodRequest request;
  request.set_manifest(manifest);
  return request;
}

inline control::v1::UnwantPodRequest UnwantRequest(const std::string& uid) {
  control::v1::UnwantPodRequest request;
  request.set_uid(uid);
  return request;
}

}  // namespace devmgr
