// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace devmgr::bench {

/// A server of gRPC's own, as drivers, plugins and runtimes have one: what a
/// call takes without us is what a call to such a peer takes. Its thread waits
/// on a completion queue, since the callback API's wake late after idleness.
class GrpcPeer {
 public:
  struct Options {
    std::filesystem::path socket;
    /// What a unary call of `method` is answered with.
    std::function<std::string(const std::string& method, std::string request)>
        answer;
    /// A call of this method is answered with so many times this message.
    std::string stream_method = {};
    std::string message = {};
    int messages = 0;
  };

  static std::unique_ptr<GrpcPeer> Start(Options options);
  virtual ~GrpcPeer() = default;
};

}  // namespace devmgr::bench
