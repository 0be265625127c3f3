// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace devmgr::apiserver {

/// The URL of a request, and what it takes to reach it: libcurl takes the name
/// in the URL for SNI, and to check the certificate.
struct Address {
  std::string url;  ///< Without path and query.
  std::string
      connect_to;    ///< `name:port:host:port`; empty: where the URL says.
  std::string host;  ///< For the header `Host`; empty: as in the URL.
};
Address AddressOf(const std::string& server,
                  const std::string& tls_server_name);

}  // namespace devmgr::apiserver
