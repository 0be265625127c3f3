// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <netinet/in.h>

#include <string>
#include <string_view>

namespace devmgrd {

/// Where to listen: an address of this machine, IPv4, and a port; 0 is any port
/// that is free.
struct ListenAddress {
  std::string host = "127.0.0.1";
  in_port_t port = 0;

  std::string ToString() const;  ///< `127.0.0.1:80`.
};

/// Reads `IP:PORT`, `localhost:PORT`, and `:PORT` or `PORT` for the loopback.
/// No names are looked up.
///   InvalidArgument  it is none of these; quotes it
absl::StatusOr<ListenAddress> ParseListenAddress(std::string_view text);

}  // namespace devmgrd
