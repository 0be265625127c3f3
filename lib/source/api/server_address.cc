// SPDX-License-Identifier: Apache-2.0
#include "source/api/server_address.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace devmgr::apiserver {

Address AddressOf(const std::string& server,
                  const std::string& tls_server_name) {
  if (tls_server_name.empty() || !server.starts_with("https://")) {
    return {.url = server, .connect_to = "", .host = ""};
  }
  const std::size_t begin = std::string_view("https://").size();
  const std::size_t end = std::min(server.find('/', begin), server.size());
  std::string host = server.substr(begin, end - begin);
  std::string port = "443";
  const std::size_t colon = host.rfind(':');
  if (colon != std::string::npos &&
      host.find(']', colon) == std::string::npos) {
    port = host.substr(colon + 1);
    host.erase(colon);
  }
  return {.url = fmt::format("https://{}:{}{}", tls_server_name, port,
                             server.substr(end)),
          .connect_to =
              fmt::format("{}:{}:{}:{}", tls_server_name, port, host, port),
          .host = server.substr(begin, end - begin)};
}

}  // namespace devmgr::apiserver
