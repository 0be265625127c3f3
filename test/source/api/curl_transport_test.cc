// SPDX-License-Identifier: Apache-2.0
#include "source/api/curl_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <zlib.h>

#include <fstream>
#include <future>
#include <memory>
#include <string>

#include "common/executor.h"
#include "common/status.h"
#include "source/api/curl_library.h"
#include "source/api/key_pair.h"
#include "source/api/server_address.h"
#include "support/mailbox.h"
#include "support/raw_http_server.h"
#include "support/test_certificates.h"

namespace devmgr::apiserver {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ApiRequest Request(ApiRequest::Kind kind = ApiRequest::Kind::kGet) {
  return {.kind = kind,
          .target = "/version?x=1",
          .deadline = kPatience,
          .max_bytes = 0};
}

class CurlTransportTest : public ::testing::Test {
 protected:
  ~CurlTransportTest() override {
    if (transport != nullptr) {
      RunOnExecutor([this] { transport.reset(); });
    }
    executor->Stop();
  }
  void Start() {
    if (config.server.empty()) config.server = server.Url();
    auto started = StartCurlTransport(config, *executor);
    ASSERT_TRUE(started.ok()) << started.status();
    transport = *std::move(started);
  }
  void StartWithTls(const TestCertificate& certificate) {
    server.UseTls(certificate);
    config.server = server.Url("https");
    credentials.ca_pem = authority.Pem();
    Start();
  }
  template <typename Work>
  void RunOnExecutor(Work work) {
    std::promise<void> done;
    executor->Post([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }
  Transport::TransferId Send(const ApiRequest& request) {
    Transport::TransferId id = 0;
    RunOnExecutor([&] {
      id = transport->Start(
          request, std::make_shared<const RequestCredentials>(credentials),
          {.on_head = [this](const ResponseHead& head) { heads.Put(head); },
           .on_data =
               [this](std::string_view bytes) { data.Put(std::string(bytes)); },
           .on_end = [this](const absl::Status& status) { ends.Put(status); }});
    });
    return id;
  }
  absl::Status TakeEnd() {
    return ends.Take().value_or(absl::InternalError("no end came"));
  }
  std::string TakeData(std::size_t size) {
    std::string all;
    while (all.size() < size) {
      const auto more = data.Take();
      if (!more) break;
      all += *more;
    }
    return all;
  }

  RawHttpServer server;
  const TestCertificate authority = MakeCertificate("test CA");
  Kubeconfig config;
  RequestCredentials credentials;
  Mailbox<ResponseHead> heads;
  Mailbox<std::string> data;
  Mailbox<absl::Status> ends;
  std::unique_ptr<ThreadExecutor> executor = ThreadExecutor::Start("test");
  std::unique_ptr<Transport> transport;
};

TEST(CurlLibraryTest, SaysThatLibcurlIsNotThere) {
  const absl::Status missing = LoadCurlFrom("libnone.so.4").status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(missing), HasSubstr("libnone.so.4: cannot open"));
  const absl::Status another = LoadCurlFrom("libc.so.6").status();
  EXPECT_EQ(another.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(another), HasSubstr("curl_global_init"));
}

TEST_F(CurlTransportTest, SendsARequestAndPassesOnTheAnswer) {
  Start();
  Send(Request());
  RawConnection connection = server.Accept();
  const std::string request = connection.ReadRequest();
  EXPECT_THAT(request, HasSubstr("GET /version?x=1 HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nAccept: application/json\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nUser-Agent: devmgr/"));
  EXPECT_THAT(request, Not(HasSubstr("Accept-Encoding")));
  connection.Answer("hello", "503 No", "retry-after: 7\r\n");
  const auto head = heads.Take();
  ASSERT_TRUE(head);
  EXPECT_EQ(head->code, 503);
  EXPECT_EQ(head->retry_after, std::chrono::seconds(7));
  EXPECT_EQ(TakeData(5), "hello");
  EXPECT_TRUE(TakeEnd().ok());
  EXPECT_EQ(heads.size(), 0u);
}

TEST_F(CurlTransportTest, UsesAConnectionAgain) {
  Start();
  Send(Request());
  RawConnection connection = server.Accept();
  for (int i = 0; i < 3; ++i) {
    EXPECT_NE(connection.ReadRequest(), "");
    connection.Answer("x");
    EXPECT_TRUE(TakeEnd().ok());
    Send(Request());
  }
  EXPECT_NE(connection.ReadRequest(), "");
}

TEST_F(CurlTransportTest, PassesOnAWatchAsItComes) {
  Start();
  Send(Request(ApiRequest::Kind::kWatch));
  RawConnection connection = server.Accept();
  connection.ReadRequest();
  connection.BeginChunks();
  EXPECT_EQ(heads.Take()->code, 200);
  for (const std::string piece : {"one", "two"}) {
    connection.SendChunk(piece);
    EXPECT_EQ(TakeData(3), piece);
  }
  EXPECT_EQ(ends.size(), 0u);
  connection.EndChunks();
  EXPECT_TRUE(TakeEnd().ok());
}

TEST_F(CurlTransportTest, AWatchThatIsCutHasNotEnded) {
  Start();
  Send(Request(ApiRequest::Kind::kWatch));
  RawConnection connection = server.Accept();
  connection.ReadRequest();
  connection.BeginChunks();
  connection.SendChunk("one");
  EXPECT_EQ(TakeData(3), "one");
  connection.Close();
  const absl::Status end = TakeEnd();
  EXPECT_FALSE(end.ok());
  EXPECT_THAT(std::string(end.message()), HasSubstr(server.Url()));
}

TEST_F(CurlTransportTest, SaysWhyItCannotConnect) {
  {
    RawHttpServer gone;
    config.server = gone.Url();
  }
  Start();
  Send(Request());
  const absl::Status end = TakeEnd();
  EXPECT_EQ(end.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(end.message()), HasSubstr(config.server + ": "));
  // The next time it takes longer, and is the same trouble.
  EXPECT_THAT(std::string(end.message()), Not(HasSubstr(" ms")));
}

TEST_F(CurlTransportTest, EndsARequestAtItsDeadline) {
  Start();
  ApiRequest request = Request();
  request.deadline = std::chrono::seconds(1);
  Send(request);
  RawConnection connection = server.Accept();
  connection.ReadRequest();
  EXPECT_EQ(TakeEnd().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(CurlTransportTest, CountsTheBytesOfAnAnswer) {
  Start();
  ApiRequest request = Request();
  request.max_bytes = 10;
  Send(request);
  RawConnection connection = server.Accept();
  connection.ReadRequest();
  connection.BeginChunks();
  connection.SendChunk("12345678901");
  const absl::Status end = TakeEnd();
  EXPECT_EQ(end.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(end.message()),
              HasSubstr("the answer exceeds 10 bytes"));
}

TEST_F(CurlTransportTest, CountsTheBytesOfHeaders) {
  Start();
  Send(Request());
  RawConnection connection = server.Accept();
  connection.ReadRequest();
  std::string head = "HTTP/1.1 200 OK\r\n";
  while (head.size() < (70u << 10)) {
    head += "X: " + std::string(1000, 'x') + "\r\n";
  }
  connection.Send(head);
  EXPECT_THAT(std::string(TakeEnd().message()),
              HasSubstr("the headers exceed 65536 bytes"));
}

TEST_F(CurlTransportTest, FollowsNoRedirect) {
  Start();
  Send(Request());
  RawConnection connection = server.Accept();
  connection.ReadRequest();
  connection.Answer("", "302 Found", "Location: /other\r\n");
  EXPECT_EQ(heads.Take()->code, 302);
  EXPECT_TRUE(TakeEnd().ok());
}

TEST_F(CurlTransportTest, NothingComesAfterACancel) {
  Start();
  const Transport::TransferId id = Send(Request(ApiRequest::Kind::kWatch));
  RawConnection connection = server.Accept();
  connection.ReadRequest();
  connection.BeginChunks();
  EXPECT_TRUE(heads.Take());
  RunOnExecutor([&] { transport->Cancel(id); });
  // The connection goes with it.
  EXPECT_EQ(connection.ReadRequest(), "");
  RunOnExecutor([] {});
  EXPECT_EQ(ends.size(), 0u);
  EXPECT_EQ(data.size(), 0u);
}

TEST_F(CurlTransportTest, StopsAmidATransfer) {
  Start();
  Send(Request(ApiRequest::Kind::kWatch));
  RawConnection connection = server.Accept();
  connection.ReadRequest();
  RunOnExecutor([&] { transport.reset(); });
  EXPECT_EQ(connection.ReadRequest(), "");
  EXPECT_EQ(ends.size(), 0u);
}

TEST_F(CurlTransportTest, AsksForCompressedListsOnly) {
  Start();
  Send(Request(ApiRequest::Kind::kList));
  RawConnection connection = server.Accept();
  EXPECT_THAT(connection.ReadRequest(), HasSubstr("Accept-Encoding: gzip\r\n"));
  z_stream stream{};
  ASSERT_EQ(
      deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY),
      Z_OK);
  const std::string plain(100'000, 'p');
  std::string packed(1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  ASSERT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  connection.Answer(packed, "200 OK", "Content-Encoding: gzip\r\n");
  EXPECT_EQ(TakeData(plain.size()), plain);
  EXPECT_TRUE(TakeEnd().ok());
}

TEST_F(CurlTransportTest, Api016IsNotReadFromWhileItsUserIsStalled) {
  Start();
  Send(Request(ApiRequest::Kind::kWatch));
  RawConnection connection = server.Accept();
  connection.ReadRequest();
  connection.BeginChunks();
  ASSERT_TRUE(heads.Take());
  std::promise<void> stalled;
  executor->Post([&] { stalled.get_future().wait(); });

  // One chunk of 100 MB, of which the client and the kernel take some.
  constexpr std::size_t kOffered = 100'000'000;
  const std::string piece(1 << 16, 'x');
  connection.Send("5f5e100\r\n");
  std::size_t sent = 0;
  while (connection.WaitForRoom(std::chrono::milliseconds(500))) {
    sent += connection.TrySend(piece);
    ASSERT_LT(sent, std::size_t{20} << 20);
  }
  EXPECT_EQ(data.size(), 0u);

  stalled.set_value();
  std::future<void> rest = std::async(std::launch::async, [&] {
    while (sent < kOffered) {
      const std::string_view next(piece.data(),
                                  std::min(piece.size(), kOffered - sent));
      if (!connection.Send(next)) return;
      sent += next.size();
    }
    connection.Send("\r\n");
    connection.EndChunks();
  });
  std::size_t got = 0;
  while (got < kOffered) {
    const auto more = data.Take();
    ASSERT_TRUE(more) << "nothing came after " << got;
    got += more->size();
  }
  rest.wait();
  EXPECT_EQ(got, kOffered);
  EXPECT_TRUE(TakeEnd().ok());
}

TEST_F(CurlTransportTest, Api014HasTheKernelNoticeASilentServerWithinAMinute) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_TRUE(KeepAlive(socket.get()));
  const auto option = [&](int level, int name) {
    int value = 0;
    socklen_t size = sizeof(value);
    EXPECT_EQ(::getsockopt(socket.get(), level, name, &value, &size), 0);
    return value;
  };
  EXPECT_EQ(option(SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_LE(
      option(IPPROTO_TCP, TCP_KEEPIDLE) +
          option(IPPROTO_TCP, TCP_KEEPINTVL) * option(IPPROTO_TCP, TCP_KEEPCNT),
      60);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_USER_TIMEOUT), 45'000);
}

/// The timer of keepalive of the connection from `port`, as the kernel has it.
std::string TimerOfClient(const std::string& server_port_hex) {
  std::ifstream table("/proc/net/tcp");
  std::string line;
  while (std::getline(table, line)) {
    // Columns: number, local, remote, state, queues, timer:when.
    const std::size_t remote = line.find(':', line.find(':') + 1);
    if (line.find(":" + server_port_hex + " 01 ", remote) ==
        std::string::npos) {
      continue;
    }
    return line;
  }
  return "";
}

TEST_F(CurlTransportTest, Api014SetsItOnEveryConnection) {
  Start();
  Send(Request(ApiRequest::Kind::kWatch));
  RawConnection connection = server.Accept();
  connection.ReadRequest();
  connection.BeginChunks();
  ASSERT_TRUE(heads.Take());
  char port[8];
  const std::string url = server.Url();
  std::snprintf(port, sizeof(port), "%04X",
                std::stoi(url.substr(url.rfind(':') + 1)));
  // 02: the timer of keepalive runs.
  EXPECT_THAT(TimerOfClient(port), HasSubstr(" 02:"));
}

TEST_F(CurlTransportTest, SendsTheTokenAndWhomItActsAs) {
  const TestCertificate certificate = MakeCertificate("127.0.0.1", &authority);
  credentials.token = Secret("sesame");
  config.act_as = {.user = "alice",
                   .uid = "7",
                   .groups = {"a", "b"},
                   .extra = {{"example.com/scopes", {"x"}}}};
  StartWithTls(certificate);
  Send(Request());
  RawConnection connection = server.Accept();
  ASSERT_TRUE(connection.is_open());
  const std::string request = connection.ReadRequest();
  EXPECT_THAT(request, HasSubstr("\r\nAuthorization: Bearer sesame\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nImpersonate-User: alice\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nImpersonate-Uid: 7\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nImpersonate-Group: a\r\n"
                                 "Impersonate-Group: b\r\n"));
  EXPECT_THAT(request,
              HasSubstr("\r\nImpersonate-Extra-example.com%2Fscopes: x\r\n"));
  connection.Answer("{}");
  EXPECT_TRUE(TakeEnd().ok());
}

TEST_F(CurlTransportTest, Api024SendsNoTokenWithoutEncryption) {
  credentials.token = Secret("sesame");
  Start();
  Send(Request());
  RawConnection connection = server.Accept();
  EXPECT_THAT(connection.ReadRequest(), Not(HasSubstr("Authorization")));
}

TEST_F(CurlTransportTest, Api020ShowsANewPairOnNewConnections) {
  StartWithTls(MakeCertificate("127.0.0.1", &authority));
  for (const char* name : {"system:node:old", "system:node:new"}) {
    const TestCertificate client = MakeCertificate(name, &authority);
    credentials.certificate_pem = client.Pem();
    credentials.key_pem = Secret(client.KeyPem());
    Send(Request());
    RawConnection connection = server.Accept();
    ASSERT_TRUE(connection.is_open());
    connection.ReadRequest();
    EXPECT_EQ(connection.ClientName(), name);
    connection.Answer("{}");
    EXPECT_TRUE(TakeEnd().ok());
  }
}

TEST_F(CurlTransportTest, Api023ChecksTheNameThatTheKubeconfigGives) {
  config.tls_server_name = "kube.test";
  StartWithTls(MakeCertificate("kube.test", &authority));
  Send(Request());
  RawConnection connection = server.Accept();
  ASSERT_TRUE(connection.is_open());
  EXPECT_EQ(connection.ServerName(), "kube.test");
  EXPECT_THAT(connection.ReadRequest(),
              HasSubstr("\r\nHost: " + server.Url().substr(7) + "\r\n"));
  connection.Answer("{}");
  EXPECT_TRUE(TakeEnd().ok());
}

TEST_F(CurlTransportTest, Api023NamesBothWhenTheNameIsAnotherOne) {
  config.tls_server_name = "kube.test";
  StartWithTls(MakeCertificate("other.test", &authority));
  Send(Request());
  RawConnection connection = server.Accept();
  EXPECT_EQ(connection.ReadRequest(), "");
  const absl::Status end = TakeEnd();
  EXPECT_EQ(end.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(end.message()),
              HasSubstr(server.Url("https") + " as 'kube.test': "));
}

TEST_F(CurlTransportTest, TrustsNoOtherAuthority) {
  const TestCertificate other = MakeCertificate("other CA");
  StartWithTls(MakeCertificate("127.0.0.1", &other));
  Send(Request());
  RawConnection connection = server.Accept();
  EXPECT_EQ(connection.ReadRequest(), "");
  EXPECT_EQ(TakeEnd().code(), absl::StatusCode::kUnavailable);
}

TEST_F(CurlTransportTest, TrustsAnyServerWhereItIsToldTo) {
  config.insecure_skip_tls_verify = true;
  server.UseTls(MakeCertificate("other.test"));
  config.server = server.Url("https");
  Start();
  Send(Request());
  RawConnection connection = server.Accept();
  ASSERT_TRUE(connection.is_open());
  connection.ReadRequest();
  connection.Answer("{}");
  EXPECT_TRUE(TakeEnd().ok());
}

TEST(AddressTest, PutsTheNameIntoTheUrl) {
  const Address plain = AddressOf("https://api.test:6443/prefix", "");
  EXPECT_EQ(plain.url, "https://api.test:6443/prefix");
  EXPECT_EQ(plain.connect_to, "");
  const Address named = AddressOf("https://[fd00::1]/prefix", "kube.test");
  EXPECT_EQ(named.url, "https://kube.test:443/prefix");
  EXPECT_EQ(named.connect_to, "kube.test:443:[fd00::1]:443");
  EXPECT_EQ(named.host, "[fd00::1]");
}

TEST(KeyPairTest, TakesACertificateWithItsKeyOnly) {
  const TestCertificate one = MakeCertificate("one");
  const TestCertificate two = MakeCertificate("two");
  // One file may have both.
  const std::string both = one.Pem() + one.KeyPem();
  const auto info = CheckKeyPair(both, both);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_GT(info->not_after, std::chrono::system_clock::now());
  EXPECT_EQ(CheckKeyPair(one.Pem(), two.KeyPem()).status().message(),
            "the key is the key of another certificate");
  EXPECT_EQ(CheckKeyPair("", one.KeyPem()).status().message(),
            "there is no certificate in it");
  const std::string half = one.KeyPem().substr(0, 100);
  EXPECT_EQ(CheckKeyPair(one.Pem(), half).status().message(),
            "there is no key without a password in it");
}

}  // namespace
}  // namespace devmgr::apiserver
