// SPDX-License-Identifier: Apache-2.0
//
// An HTTP/1.1 server for few clients that stay long: one thread, answers as a
// whole or in chunks for as long as they take.
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace devmgr::http {

using Header = std::pair<std::string, std::string>;

/// What a client showed in the handshake of TLS. It holds the key of it.
struct ClientCertificate {
  std::string subject;    ///< `CN=system:node:n1,O=system:nodes`
  bool verified = false;  ///< Signed by the authority of the options.
};

struct Request {
  std::string method;  ///< `GET`
  std::string target;  ///< Path and query as they came.
  std::vector<Header> headers;
  std::string body;
  std::string peer;  ///< `127.0.0.1:41234`
  std::optional<ClientCertificate> certificate;

  /// The value of the first header of that name, in any case; empty for none.
  std::string_view Find(std::string_view name) const;
};

/// `Content-Length` and `Connection` are added.
struct Response {
  int status = 200;
  std::vector<Header> headers;
  std::string body;
  /// Send so many bytes of the answer, headers included, and close.
  std::optional<std::size_t> cut_after;
};

/// What the owner of a streamed answer is called with, on the server's thread.
struct StreamEvents {
  /// All that was written has left for the client: write on. The first time
  /// when the headers have left.
  std::function<void()> drained;
  /// The stream is over, whether it was ended here or the client left. Once.
  std::function<void()> closed;
};

/// An answer that is sent chunk by chunk. Thread-safe; after the stream is over
/// calls do nothing.
class StreamWriter {
 public:
  virtual ~StreamWriter() = default;
  /// Queues one chunk. False when the stream is over. There is no bound: keep
  /// `pending` small by waiting for `drained`.
  virtual bool Write(std::string chunk) = 0;
  /// Bytes that were written and have not left yet.
  virtual std::size_t pending() const = 0;
  /// Ends the answer after what was written. A client that does not take that
  /// within the drain timeout is cut off.
  virtual void End() = 0;
  /// Closes the connection after what was written, in the middle of the answer.
  virtual void Cut() = 0;
  /// Neither sends nor reads any more, and keeps the connection.
  virtual void FallSilent() = 0;
};

/// Answers one request, once. May be kept, and be used from any thread. When
/// it goes without an answer the client gets a 500.
class Responder {
 public:
  virtual ~Responder() = default;
  virtual void Respond(Response response) = 0;
  /// Sends the headers at once.
  virtual std::shared_ptr<StreamWriter> Stream(int status,
                                               std::vector<Header> headers,
                                               StreamEvents events) = 0;
  /// Never answers, and does not see that the client leaves.
  virtual void FallSilent() = 0;
  /// False when the client left, or the server stopped.
  virtual bool connected() const = 0;
};

/// Runs on the server's thread and must not block it.
using Handler = std::function<void(Request, std::shared_ptr<Responder>)>;

struct Tls {
  std::filesystem::path certificate;  ///< PEM, with its chain.
  std::filesystem::path key;
  /// Against which the certificates of clients are verified. They are asked
  /// for in any case, and no client has to have one.
  std::filesystem::path client_authority;
};

struct Options {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: one that is free.
  /// Listened at with the same port. Those that this host does not have, as
  /// `::1` without IPv6, are left out.
  std::vector<std::string> further_addresses;
  std::optional<Tls> tls;
  std::uint32_t max_header_bytes = 64u << 10;
  std::uint64_t max_body_bytes = 3u << 20;
  std::size_t max_connections = 64;
  /// From the connection to the end of the first headers.
  std::chrono::milliseconds header_timeout{10'000};
  /// From the headers to the end of the body.
  std::chrono::milliseconds body_timeout{30'000};
  /// Between two requests.
  std::chrono::milliseconds idle_timeout{180'000};
  /// For a client to take the rest of what was ended.
  std::chrono::milliseconds drain_timeout{10'000};
  /// The body for what is refused before a handler sees it (400, 413, 431);
  /// plain text without.
  std::function<Response(int status, std::string_view text)> refusal;
};

/// Thread-safe.
class HttpServer {
 public:
  /// InvalidArgument for options that cannot be used, Unavailable when the
  /// address cannot be listened at.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(Options options,
                                                           Handler handler);
  /// Stops.
  virtual ~HttpServer() = default;

  virtual std::uint16_t port() const = 0;
  virtual std::size_t connections() const = 0;
  /// Reads certificate and key again, for connections to come; those that are
  /// open go on. InvalidArgument when they cannot be used: the old ones stay.
  virtual absl::Status ReloadCertificate() = 0;
  /// Runs `task` on the server's thread. After the stop it is dropped.
  virtual void Post(std::function<void()> task) = 0;
  virtual void PostAfter(std::chrono::milliseconds delay,
                         std::function<void()> task) = 0;
  /// Closes all sockets and joins the thread. `closed` of open streams is
  /// called before. Not to be called from the server's thread.
  virtual void Stop() = 0;
};

}  // namespace devmgr::http
