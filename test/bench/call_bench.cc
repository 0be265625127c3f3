// SPDX-License-Identifier: Apache-2.0
//
// A call to a driver right after another one, and after 2 s in which nothing
// happened, beside two limits: gRPC's own blocking call, and one byte to and
// fro on a Unix socket. The peers live in a process of their own.
#include <fmt/core.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <future>
#include <memory>

#include "bench/grpc_peer.h"
#include "bench/support.h"
#include "rpc/connection.h"
#include "support/temp_folder.h"

namespace devmgr::bench {
namespace {

constexpr char kMethod[] = "/bench.Echo/Echo";

/// The other side: a gRPC server at `socket`, and `bytes` echoed. Ends with
/// the process that started it.
void ServePeers(const std::filesystem::path& socket, int bytes) {
  const auto server =
      GrpcPeer::Start({socket, [](const std::string&, std::string request) {
                         return request;
                       }});
  char byte = 'r';  // ready
  do {
    if (write(bytes, &byte, 1) != 1) break;
  } while (read(bytes, &byte, 1) == 1);
}

class Caller {
 public:
  Caller(const std::filesystem::path& socket, int bytes)
      : bytes_(bytes),
        runtime_(Must(rpc::Runtime::Start())),
        connection_(Must(rpc::Dial(*runtime_, socket, [] {}))),
        stub_(grpc::CreateChannel("unix:" + socket.string(),
                                  grpc::InsecureChannelCredentials())) {}

  /// As the manager calls drivers.
  void Ours() {
    std::promise<absl::Status> done;
    connection_->Call(kMethod, request_, {kPatience},
                      [&](const absl::StatusOr<std::string>& answer) {
                        done.set_value(answer.status());
                      });
    Must(done.get_future().get());
  }

  void BareGrpc() {
    grpc::ClientContext context;
    const grpc::Slice slice(request_);
    grpc::ByteBuffer answer;
    grpc::Status status;
    const auto reader = stub_.PrepareUnaryCall(
        &context, kMethod, grpc::ByteBuffer(&slice, 1), &queue_);
    reader->StartCall();
    reader->Finish(&answer, &status, this);
    void* tag = nullptr;
    bool ok = false;
    if (!queue_.Next(&tag, &ok) || !status.ok()) Fail("gRPC call failed");
  }

  void BareSocket() const {
    char byte = 'x';
    if (write(bytes_, &byte, 1) != 1 || read(bytes_, &byte, 1) != 1) {
      Fail("the peer is gone");
    }
  }

 private:
  const int bytes_;
  const std::string request_ = std::string(200, 'x');
  const std::unique_ptr<rpc::Runtime> runtime_;
  const std::unique_ptr<rpc::Connection> connection_;
  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
};

struct Times {
  Samples ours;
  Samples grpc;
  Samples socket;
};

/// One call of each kind, each after `pause`.
void Measure(Caller& caller, std::chrono::milliseconds pause, Times* times) {
  std::this_thread::sleep_for(pause);
  times->ours.Add(Microseconds([&] { caller.Ours(); }));
  std::this_thread::sleep_for(pause);
  times->grpc.Add(Microseconds([&] { caller.BareGrpc(); }));
  std::this_thread::sleep_for(pause);
  times->socket.Add(Microseconds([&] { caller.BareSocket(); }));
}

void Calls(Report& report, const std::filesystem::path& socket, int bytes) {
  Caller caller(socket, bytes);
  Times busy;
  Times idle;
  for (int i = 0; i < 20; ++i) Measure(caller, {}, &busy);  // warms up
  busy = {};
  const int rounds = report.brief() ? 1 : 15;
  for (int i = 0; i < rounds; ++i) {
    for (int j = 0; j < 50; ++j) Measure(caller, {}, &busy);
    Measure(caller, std::chrono::milliseconds(2'000), &idle);
  }
  for (const auto& [when, times] :
       {std::pair{"right away", &busy}, {"after 2 s of idleness", &idle}}) {
    const double grpc = times->grpc.Median();
    report.Add({fmt::format("call to a driver, {}", when), "us",
                times->ours.Median(), grpc, "bare gRPC", 2 * grpc});
    report.Add({fmt::format("bare gRPC call, {}", when), "us", grpc,
                times->socket.Median(), "a byte to and fro on a socket",
                std::nullopt});
  }
}

}  // namespace
}  // namespace devmgr::bench

int main(int argc, char** argv) {
  using namespace devmgr;
  bench::Report report(argc, argv);
  const TempFolder folder;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return 1;
  // Before gRPC is up, which does not live through a fork.
  const pid_t peer = fork();
  if (peer == 0) {
    close(ends[0]);
    bench::ServePeers(folder.path() / "socket", ends[1]);
    _exit(0);
  }
  close(ends[1]);
  char byte = 0;
  if (read(ends[0], &byte, 1) != 1) bench::Fail("the peer does not start");
  bench::Calls(report, folder.path() / "socket", ends[0]);
  close(ends[0]);
  waitpid(peer, nullptr, 0);
}
