// SPDX-License-Identifier: Apache-2.0
//
// A call and a stream through the CRI proxy, beside the same without it and
// through a program that only copies bytes; what stalled streams cost, and what
// it does while nothing passes. Each of the four is a process of its own; the
// ways take turns, so that whatever else runs here hurts all of them.
#include <devmgr/cri.h>
#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <vector>

#include "bench/child.h"
#include "bench/grpc_peer.h"
#include "bench/support.h"
#include "bench/unary_caller.h"
#include "rpc/unix_socket.h"
#include "support/stream_client.h"
#include "support/temp_folder.h"

namespace devmgr::bench {
namespace {

constexpr char kEcho[] = "/bench.Echo/Echo";
constexpr char kStream[] = "/bench.Echo/Stream";
constexpr int kStreamMiB = 60;
constexpr double kGoalLatency = 1.45;
constexpr double kGoalThroughput = 0.6;
constexpr int kStalled = 64;
constexpr double kGoalStalledMiB = 80;
constexpr double kGoalIdleMiB = 6;

void ServeRuntime(const std::filesystem::path& socket,
                  const std::function<void()>& ready) {
  const auto server = GrpcPeer::Start(
      {socket, [](const std::string&, std::string request) { return request; },
       kStream, std::string(1 << 20, 's'), kStreamMiB});
  ready();
  pause();
}

void ServeProxy(const std::filesystem::path& listen,
                const std::filesystem::path& backend,
                const std::function<void()>& ready) {
  CriProxyOptions options;
  options.listen = listen;
  options.backend = backend;
  const auto proxy = Must(CriProxy::Start(options));
  ready();
  pause();
}

/// Reads here, writes there: what any proxy costs at least.
void ServeCopier(const std::filesystem::path& listen,
                 const std::filesystem::path& backend,
                 const std::function<void()>& ready) {
  const auto socket = Must(rpc::SocketFile::Listen(listen, 0600));
  const UniqueFd epoll(epoll_create1(0));
  std::map<int, int> other;
  const auto watch = [&](int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event);
  };
  watch(socket->fd());
  ready();
  std::vector<char> buffer(256 * 1024);
  for (;;) {
    epoll_event event{};
    if (epoll_wait(epoll.get(), &event, 1, -1) != 1) continue;
    if (event.data.fd == socket->fd()) {
      // Blocking, so that a full socket holds the copier back.
      const int caller = accept4(socket->fd(), nullptr, nullptr, 0);
      const int callee = Must(rpc::ConnectUnix(backend)).Release();
      other[caller] = callee;
      other[callee] = caller;
      watch(caller);
      watch(callee);
      continue;
    }
    const int from = event.data.fd;
    const ssize_t count = read(from, buffer.data(), buffer.size());
    if (count <= 0) {
      const int to = other[from];
      close(from);
      close(to);
      other.erase(from);
      other.erase(to);
      continue;
    }
    for (ssize_t sent = 0; sent < count;) {
      // Who has hung up in the meantime must not end the copier by a signal.
      const ssize_t more =
          send(other[from], buffer.data() + sent,
               static_cast<std::size_t>(count - sent), MSG_NOSIGNAL);
      if (more < 0 && errno != EAGAIN) break;
      if (more > 0) sent += more;
    }
  }
}

class Caller {
 public:
  explicit Caller(const std::filesystem::path& socket)
      : socket_(socket), caller_(socket) {}

  void Call() { caller_.Call(kEcho, request_); }

  void Stream() const {
    StreamClient client(socket_, kStream, "", {}, std::chrono::minutes(2));
    int count = 0;
    while (client.Next()) ++count;
    if (count != kStreamMiB) {
      Fail(fmt::format("a stream of '{}' was cut after {} messages: {}",
                       socket_.string(), count, client.End().error_message()));
    }
  }

  Samples busy;
  Samples idle;
  Samples stream;

 private:
  const std::filesystem::path socket_;
  const std::string request_ = std::string(200, 'x');
  UnaryCaller caller_;
};

struct Ways {
  Caller direct;
  Caller proxied;
  Caller copied;

  template <typename Act>
  void Each(Act act) {
    for (Caller* caller : {&direct, &proxied, &copied}) act(*caller);
  }
};

void MeasureCalls(Report& report, Ways& ways) {
  for (int i = 0; i < 200; ++i) ways.Each([](Caller& one) { one.Call(); });
  const int calls = report.brief() ? 50 : 5000;
  for (int i = 0; i < calls; ++i) {
    ways.Each(
        [](Caller& one) { one.busy.Add(Microseconds([&] { one.Call(); })); });
  }
  for (int i = 0; i < (report.brief() ? 1 : 30); ++i) {
    ways.Each([](Caller& one) {
      std::this_thread::sleep_for(std::chrono::seconds(2));
      one.idle.Add(Microseconds([&] { one.Call(); }));
    });
  }
  const auto row = [&](const char* when, Samples Caller::*samples) {
    const double direct = (ways.direct.*samples).Median();
    report.Add({fmt::format("call through the proxy, {}", when), "us",
                (ways.proxied.*samples).Median(), direct, "a direct call",
                kGoalLatency * direct});
    report.Add({fmt::format("call through a byte copier, {}", when), "us",
                (ways.copied.*samples).Median(), direct, "a direct call",
                std::nullopt});
  };
  row("right away", &Caller::busy);
  row("after 2 s of idleness", &Caller::idle);
}

void MeasureStreams(Report& report, Ways& ways) {
  for (int i = 0; i < (report.brief() ? 1 : 10); ++i) {
    ways.Each([](Caller& one) {
      one.stream.Add(Microseconds([&] { one.Stream(); }) / 1000);
    });
  }
  const double direct = ways.direct.stream.Median();
  report.Add({fmt::format("stream of {} MiB through the proxy", kStreamMiB),
              "ms", ways.proxied.stream.Median(), direct, "a direct stream",
              direct / kGoalThroughput});
  report.Add({fmt::format("stream of {} MiB through a byte copier", kStreamMiB),
              "ms", ways.copied.stream.Median(), direct, "a direct stream",
              std::nullopt});
}

void MeasureStalled(Report& report, const std::filesystem::path& socket,
                    Ways& ways, const Child& proxy) {
  const double before = proxy.ResidentMiB();
  std::vector<std::unique_ptr<StreamClient>> stalled;
  for (int i = 0; i < kStalled; ++i) {
    stalled.push_back(std::make_unique<StreamClient>(
        socket, kStream, "", std::map<std::string, std::string>{},
        std::chrono::minutes(2)));
    if (!stalled.back()->Next()) Fail("a stream does not begin");
  }
  std::this_thread::sleep_for(std::chrono::seconds(1));
  report.Add({fmt::format("memory for {} stalled streams", kStalled), "MiB",
              proxy.ResidentMiB() - before, std::nullopt, "", kGoalStalledMiB});
  Samples others;
  for (int i = 0; i < (report.brief() ? 10 : 500); ++i) {
    others.Add(Microseconds([&] { ways.proxied.Call(); }));
  }
  report.Add({"call beside stalled streams", "us", others.Median(),
              ways.proxied.busy.Median(), "a call without them", std::nullopt});
  const double woken = proxy.WakeUps();
  std::this_thread::sleep_for(std::chrono::seconds(report.brief() ? 1 : 20));
  report.Add({"wake-ups while streams are stalled", "in 20 s",
              proxy.WakeUps() - woken, std::nullopt, "", std::nullopt});
}

void MeasureIdle(Report& report, const Child& proxy) {
  std::this_thread::sleep_for(std::chrono::seconds(2));
  const double woken = proxy.WakeUps();
  std::this_thread::sleep_for(std::chrono::seconds(report.brief() ? 1 : 20));
  report.Add({"wake-ups while idle", "in 20 s", proxy.WakeUps() - woken,
              std::nullopt, "", 0});
}

}  // namespace
}  // namespace devmgr::bench

int main(int argc, char** argv) {
  using namespace devmgr;
  using namespace devmgr::bench;
  Report report(argc, argv);
  const TempFolder folder;
  const auto runtime_socket = folder.path() / "cri";
  const auto proxy_socket = folder.path() / "shim";
  const auto copier_socket = folder.path() / "copy";
  const Child bare([](const std::function<void()>& ready) {
    ready();
    pause();
  });
  const Child runtime([&](const std::function<void()>& ready) {
    ServeRuntime(runtime_socket, ready);
  });
  const Child proxy([&](const std::function<void()>& ready) {
    ServeProxy(proxy_socket, runtime_socket, ready);
  });
  const Child copier([&](const std::function<void()>& ready) {
    ServeCopier(copier_socket, runtime_socket, ready);
  });
  const double bare_mib = bare.ResidentMiB();
  report.Add({"memory of the proxy before its first call", "MiB",
              proxy.ResidentMiB() - bare_mib, bare_mib,
              "the same process without it", kGoalIdleMiB});
  Ways ways{Caller(runtime_socket), Caller(proxy_socket),
            Caller(copier_socket)};
  MeasureCalls(report, ways);
  MeasureIdle(report, proxy);
  MeasureStreams(report, ways);
  MeasureStalled(report, proxy_socket, ways, proxy);
}
