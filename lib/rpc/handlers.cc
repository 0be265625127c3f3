// SPDX-License-Identifier: Apache-2.0
#include "rpc/handlers.h"

#include <cstddef>

namespace devmgr::rpc {

Handlers HandlersOf(ServerOptions options) {
  Handlers handlers;
  for (auto& [path, unary] : options.methods) {
    handlers[path] = [unary = std::move(unary)](
                         std::string request,
                         const std::shared_ptr<Answerer>& answerer) {
      unary(std::move(request), [answerer](absl::StatusOr<std::string> answer) {
        answerer->Answer(std::move(answer));
      });
    };
  }
  for (auto& [path, unary] : options.caller_methods) {
    handlers[path] = [unary = std::move(unary)](
                         std::string request,
                         const std::shared_ptr<Answerer>& answerer) {
      unary(answerer->caller(), std::move(request),
            [answerer](absl::StatusOr<std::string> answer) {
              answerer->Answer(std::move(answer));
            });
    };
  }
  for (auto& [path, stream] : options.streams) {
    handlers[path] = [stream = std::move(stream)](
                         std::string request,
                         std::shared_ptr<Answerer> answerer) {
      stream(std::move(request), std::move(answerer));
    };
  }
  return handlers;
}

absl::Status UnknownMethod(const Handlers& methods, const std::string& method) {
  const std::size_t slash = method.rfind('/');
  if (!method.starts_with('/') || slash == 0) {
    return UnimplementedError("malformed method name: \"{}\"", method);
  }
  const std::string prefix = method.substr(0, slash + 1);
  const std::string service = method.substr(1, slash - 1);
  const auto known = methods.lower_bound(prefix);
  if (known != methods.end() && known->first.starts_with(prefix)) {
    return UnimplementedError("unknown method {} for service {}",
                              method.substr(slash + 1), service);
  }
  return UnimplementedError("unknown service {}", service);
}

}  // namespace devmgr::rpc
