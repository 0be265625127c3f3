// SPDX-License-Identifier: Apache-2.0
#include "source/api/kubeconfig.h"

#include <absl/strings/escaping.h>
#include <fmt/core.h>

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "api/parser.h"
#include "api/quote.h"
#include "api/value.h"
#include "common/status.h"

namespace devmgr::apiserver {
namespace {

using api::Quoted;
using api::Value;

constexpr std::size_t kMaxServerBytes = 2000;

/// Reads what the chosen context names. No message repeats a value of a user.
class KubeconfigReader {
 public:
  KubeconfigReader(const Value& root, const std::filesystem::path& file)
      : root_(root), folder_(file.parent_path()) {}

  absl::StatusOr<Kubeconfig> Read(std::string_view context) {
    DEVMGR_RETURN_IF_ERROR(ReadContext(context));
    DEVMGR_RETURN_IF_ERROR(ReadCluster());
    DEVMGR_RETURN_IF_ERROR(ReadUser());
    Warn();
    return std::move(config_);
  }

 private:
  absl::Status ReadContext(std::string_view context);
  absl::Status ReadCluster();
  absl::Status CheckServer() const;
  absl::Status CheckProxy() const;
  absl::Status ReadUser();
  absl::Status RefuseUnsupported(const Value& user, const std::string& place);
  absl::Status ReadActAs(const Value& user, const std::string& place);
  void Warn();

  /// The entry with this name in the list `list`, or nothing.
  absl::StatusOr<const Value*> Entry(std::string_view list,
                                     std::string_view member,
                                     const std::string& name) const;
  static absl::Status ReadText(const Value& map, std::string_view key,
                               const std::string& place, std::string* text);
  static absl::Status ReadFlag(const Value& map, std::string_view key,
                               const std::string& place, bool* flag);
  static absl::Status ReadTexts(const Value& list, std::string_view key,
                                const std::string& place,
                                std::vector<std::string>* texts);
  absl::Status ReadPath(const Value& map, std::string_view key,
                        const std::string& place,
                        std::filesystem::path* path) const;
  absl::Status ReadPem(const Value& map, const std::string& key,
                       const std::string& place, PemSource* pem) const;

  const Value& root_;
  const std::filesystem::path folder_;
  Kubeconfig config_;
};

/// The member, unless it is absent or null.
const Value* Present(const Value& map, std::string_view key) {
  const Value* value = map.Find(key);
  return value == nullptr || value->kind == Value::Kind::kNull ? nullptr
                                                               : value;
}

absl::Status KubeconfigReader::ReadText(const Value& map, std::string_view key,
                                        const std::string& place,
                                        std::string* text) {
  const Value* value = Present(map, key);
  if (value == nullptr) return absl::OkStatus();
  if (value->kind != Value::Kind::kString) {
    return InvalidArgumentError("{}: {} is no string", place, key);
  }
  if (api::HasControlCharacters(value->text)) {
    return InvalidArgumentError("{}: {} has control characters", place, key);
  }
  *text = value->text;
  return absl::OkStatus();
}

absl::Status KubeconfigReader::ReadFlag(const Value& map, std::string_view key,
                                        const std::string& place, bool* flag) {
  const Value* value = Present(map, key);
  if (value == nullptr) return absl::OkStatus();
  if (value->kind != Value::Kind::kBool) {
    return InvalidArgumentError("{}: {} is neither true nor false", place, key);
  }
  *flag = value->flag;
  return absl::OkStatus();
}

absl::Status KubeconfigReader::ReadTexts(const Value& list,
                                         std::string_view key,
                                         const std::string& place,
                                         std::vector<std::string>* texts) {
  if (list.kind != Value::Kind::kList) {
    return InvalidArgumentError("{}: {} is no list", place, key);
  }
  for (const api::ValuePtr& item : list.items) {
    if (item->kind != Value::Kind::kString ||
        api::HasControlCharacters(item->text)) {
      return InvalidArgumentError("{}: {} has an entry that is no plain string",
                                  place, key);
    }
    texts->push_back(item->text);
  }
  return absl::OkStatus();
}

absl::Status KubeconfigReader::ReadPath(const Value& map, std::string_view key,
                                        const std::string& place,
                                        std::filesystem::path* path) const {
  std::string text;
  DEVMGR_RETURN_IF_ERROR(ReadText(map, key, place, &text));
  if (!text.empty()) *path = folder_ / text;
  return absl::OkStatus();
}

absl::Status KubeconfigReader::ReadPem(const Value& map, const std::string& key,
                                       const std::string& place,
                                       PemSource* pem) const {
  DEVMGR_RETURN_IF_ERROR(ReadPath(map, key, place, &pem->file));
  std::string encoded;
  DEVMGR_RETURN_IF_ERROR(ReadText(map, key + "-data", place, &encoded));
  if (encoded.empty()) return absl::OkStatus();
  std::string decoded;
  if (!absl::Base64Unescape(encoded, &decoded)) {
    return InvalidArgumentError("{}: {}-data is not base64", place, key);
  }
  pem->data = Secret(std::move(decoded));
  pem->file.clear();
  return absl::OkStatus();
}

absl::StatusOr<const Value*> KubeconfigReader::Entry(
    std::string_view list, std::string_view member,
    const std::string& name) const {
  const Value* entries = Present(root_, list);
  if (entries != nullptr && entries->kind != Value::Kind::kList) {
    return InvalidArgumentError("{} is no list", list);
  }
  if (entries != nullptr) {
    for (const api::ValuePtr& entry : entries->items) {
      const Value* found = Present(*entry, "name");
      if (found == nullptr || found->text != name) continue;
      const Value* content = Present(*entry, member);
      if (content == nullptr || content->kind != Value::Kind::kMap) {
        return InvalidArgumentError("{} {} says nothing", member, Quoted(name));
      }
      return content;
    }
  }
  return InvalidArgumentError("there is no {} {} in {}", member, Quoted(name),
                              list);
}

absl::Status KubeconfigReader::ReadContext(std::string_view context) {
  config_.context = std::string(context);
  if (config_.context.empty()) {
    DEVMGR_RETURN_IF_ERROR(
        ReadText(root_, "current-context", "the kubeconfig", &config_.context));
  }
  if (config_.context.empty()) {
    return InvalidArgumentError("current-context is not set");
  }
  DEVMGR_ASSIGN_OR_RETURN(const Value* chosen,
                          Entry("contexts", "context", config_.context));
  const std::string place = "context " + Quoted(config_.context);
  DEVMGR_RETURN_IF_ERROR(ReadText(*chosen, "cluster", place, &config_.cluster));
  return ReadText(*chosen, "user", place, &config_.user);
}

absl::Status KubeconfigReader::ReadCluster() {
  DEVMGR_ASSIGN_OR_RETURN(const Value* cluster,
                          Entry("clusters", "cluster", config_.cluster));
  const std::string place = "cluster " + Quoted(config_.cluster);
  DEVMGR_RETURN_IF_ERROR(ReadText(*cluster, "server", place, &config_.server));
  while (config_.server.ends_with('/')) config_.server.pop_back();
  DEVMGR_RETURN_IF_ERROR(ReadPem(*cluster, "certificate-authority", place,
                                 &config_.certificate_authority));
  DEVMGR_RETURN_IF_ERROR(ReadFlag(*cluster, "insecure-skip-tls-verify", place,
                                  &config_.insecure_skip_tls_verify));
  DEVMGR_RETURN_IF_ERROR(
      ReadText(*cluster, "tls-server-name", place, &config_.tls_server_name));
  std::string proxy;
  DEVMGR_RETURN_IF_ERROR(ReadText(*cluster, "proxy-url", place, &proxy));
  config_.proxy_url = Secret(proxy);
  DEVMGR_RETURN_IF_ERROR(ReadFlag(*cluster, "disable-compression", place,
                                  &config_.disable_compression));
  if (config_.insecure_skip_tls_verify &&
      !config_.certificate_authority.empty()) {
    return InvalidArgumentError(
        "{}: certificate-authority and insecure-skip-tls-verify exclude each "
        "other",
        place);
  }
  DEVMGR_RETURN_IF_ERROR(WithContext(CheckServer(), "{}", place));
  return WithContext(CheckProxy(), "{}", place);
}

/// Whether `url` has one of these schemes, and a host behind it.
bool HasHost(std::string_view url,
             std::initializer_list<std::string_view> schemes) {
  return std::any_of(
      schemes.begin(), schemes.end(), [&](std::string_view scheme) {
        return url.starts_with(scheme) && url.size() > scheme.size() &&
               url[scheme.size()] != '/' && url[scheme.size()] != ':';
      });
}

absl::Status KubeconfigReader::CheckServer() const {
  const std::string& server = config_.server;
  if (server.empty()) return InvalidArgumentError("server is not set");
  if (server.size() > kMaxServerBytes) {
    return InvalidArgumentError("server exceeds {} bytes", kMaxServerBytes);
  }
  if (WithoutUserInfo(server) != server) {
    return InvalidArgumentError(
        "server has a user or a password in it, which is not supported");
  }
  if (!HasHost(server, {"http://", "https://"})) {
    // Before an @ there may be a password.
    const bool may_be_shown = server.find('@') == std::string::npos;
    return InvalidArgumentError(
        "server{} is no URL with http:// or https:// and a host",
        may_be_shown ? " " + Quoted(server) : "");
  }
  if (server.find_first_of("?# ") != std::string::npos) {
    return InvalidArgumentError("server {} has more than a host and a path",
                                Quoted(server));
  }
  return absl::OkStatus();
}

absl::Status KubeconfigReader::CheckProxy() const {
  const std::string& proxy = config_.proxy_url.Reveal();
  if (proxy.empty() ||
      HasHost(proxy, {"http://", "https://", "socks5://", "socks5h://"})) {
    return absl::OkStatus();
  }
  return InvalidArgumentError(
      "proxy-url is no URL with http://, https:// or socks5:// and a host");
}

absl::Status KubeconfigReader::RefuseUnsupported(const Value& user,
                                                 const std::string& place) {
  for (const std::string_view key : {"exec", "auth-provider"}) {
    if (Present(user, key) == nullptr) continue;
    return InvalidArgumentError(
        "{}: {} credentials are not supported; use tokenFile or "
        "client-certificate",
        place, key);
  }
  for (const std::string_view key : {"username", "password"}) {
    if (Present(user, key) == nullptr) continue;
    return InvalidArgumentError(
        "{}: username and password are not supported; use tokenFile or "
        "client-certificate",
        place);
  }
  return absl::OkStatus();
}

absl::Status KubeconfigReader::ReadUser() {
  // A cluster may ask for no credentials.
  if (config_.user.empty()) return absl::OkStatus();
  DEVMGR_ASSIGN_OR_RETURN(const Value* user,
                          Entry("users", "user", config_.user));
  const std::string place = "user " + Quoted(config_.user);
  DEVMGR_RETURN_IF_ERROR(RefuseUnsupported(*user, place));
  DEVMGR_RETURN_IF_ERROR(
      ReadPem(*user, "client-certificate", place, &config_.client_certificate));
  DEVMGR_RETURN_IF_ERROR(
      ReadPem(*user, "client-key", place, &config_.client_key));
  if (config_.client_certificate.empty() != config_.client_key.empty()) {
    return InvalidArgumentError(
        "{}: client-certificate and client-key are needed together", place);
  }
  std::string token;
  DEVMGR_RETURN_IF_ERROR(ReadText(*user, "token", place, &token));
  config_.token = Secret(token);
  DEVMGR_RETURN_IF_ERROR(
      ReadPath(*user, "tokenFile", place, &config_.token_file));
  return ReadActAs(*user, place);
}

absl::Status KubeconfigReader::ReadActAs(const Value& user,
                                         const std::string& place) {
  Impersonation& act_as = config_.act_as;
  // kubectl writes `as`, and documents call it act-as.
  for (const std::string prefix : {"as", "act-as"}) {
    DEVMGR_RETURN_IF_ERROR(ReadText(user, prefix, place, &act_as.user));
    DEVMGR_RETURN_IF_ERROR(ReadText(user, prefix + "-uid", place, &act_as.uid));
    if (const Value* groups = Present(user, prefix + "-groups")) {
      DEVMGR_RETURN_IF_ERROR(
          ReadTexts(*groups, prefix + "-groups", place, &act_as.groups));
    }
    const std::string extra_key = prefix + "-user-extra";
    const Value* extra = Present(user, extra_key);
    if (extra == nullptr) continue;
    if (extra->kind != Value::Kind::kMap) {
      return InvalidArgumentError("{}: {} is no map", place, extra_key);
    }
    for (const auto& [key, member] : extra->members) {
      if (api::HasControlCharacters(key)) {
        return InvalidArgumentError("{}: a key of {} has control characters",
                                    place, extra_key);
      }
      DEVMGR_RETURN_IF_ERROR(
          ReadTexts(*member.value, extra_key, place, &act_as.extra[key]));
    }
  }
  if (act_as.user.empty() && act_as != Impersonation()) {
    return InvalidArgumentError(
        "{}: as-uid, as-groups and as-user-extra need as", place);
  }
  return absl::OkStatus();
}

void KubeconfigReader::Warn() {
  const std::string place = "cluster " + Quoted(config_.cluster);
  if (!config_.IsHttps()) {
    config_.warnings.push_back(
        fmt::format("{}: connections to {} are not encrypted{}", place,
                    Quoted(config_.server),
                    config_.HasCredentials()
                        ? ", so that the credentials of the user are not sent"
                        : ""));
  } else if (config_.insecure_skip_tls_verify) {
    config_.warnings.push_back(
        fmt::format("{}: insecure-skip-tls-verify is set, so that any server "
                    "may answer as {}",
                    place, Quoted(config_.server)));
  }
}

absl::StatusOr<Kubeconfig> Parse(std::string_view text,
                                 const std::filesystem::path& file,
                                 std::string_view context) {
  const api::ParsedText parsed = api::ParseText(text, /*json_only=*/false);
  if (!parsed.error.empty()) {
    // What a parser says may repeat the line.
    return InvalidArgumentError("line {} is neither YAML nor JSON",
                                parsed.error_line);
  }
  if (parsed.documents.size() != 1) {
    return InvalidArgumentError("there are {} documents instead of one",
                                parsed.documents.size());
  }
  const Value& root = *parsed.documents.front();
  const Value* kind = Present(root, "kind");
  if (root.kind != Value::Kind::kMap ||
      (kind != nullptr && kind->text != "Config")) {
    return InvalidArgumentError("this is no object of kind Config");
  }
  return KubeconfigReader(root, file).Read(context);
}

std::string DescribePem(const PemSource& pem) {
  return pem.file.empty() ? "in the kubeconfig" : Quoted(pem.file.string());
}

}  // namespace

absl::StatusOr<Kubeconfig> ParseKubeconfig(std::string_view text,
                                           const std::filesystem::path& file,
                                           std::string_view context) {
  absl::StatusOr<Kubeconfig> config = Parse(text, file, context);
  if (config.ok()) return config;
  return WithContext(config.status(), "kubeconfig {}",
                     Quoted(file.string(), 300));
}

absl::StatusOr<Kubeconfig> InClusterConfig(const InClusterFiles& files) {
  for (const auto& [name, value] :
       {std::pair{"HOST", &files.host}, std::pair{"PORT", &files.port}}) {
    if (!value->empty()) continue;
    return FailedPreconditionError(
        "KUBERNETES_SERVICE_{} is not set: this is no container of a cluster",
        name);
  }
  Kubeconfig config;
  config.context = config.cluster = config.user = "in-cluster";
  const bool is_ipv6 = files.host.find(':') != std::string::npos;
  config.server =
      fmt::format("https://{}:{}",
                  is_ipv6 ? "[" + files.host + "]" : files.host, files.port);
  config.token_file = files.folder / "token";
  if (files.has_ca) {
    config.certificate_authority.file = files.folder / "ca.crt";
  } else {
    config.warnings.push_back(
        fmt::format("{} is missing, so that the roots of the system count",
                    Quoted((files.folder / "ca.crt").string(), 300)));
  }
  return config;
}

std::string WithoutUserInfo(std::string_view url) {
  const std::size_t scheme = url.find("://");
  const std::size_t begin = scheme == std::string_view::npos ? 0 : scheme + 3;
  const std::size_t end = std::min(url.find_first_of("/?#", begin), url.size());
  const std::size_t at = url.substr(0, end).rfind('@');
  if (at == std::string_view::npos || at < begin) return std::string(url);
  return std::string(url.substr(0, begin)) + std::string(url.substr(at + 1));
}

std::string DescribeKubeconfig(const Kubeconfig& config) {
  std::string text =
      fmt::format("{} (context {}", config.server, Quoted(config.context));
  if (config.insecure_skip_tls_verify) {
    text += ", any certificate is accepted";
  } else if (!config.certificate_authority.empty()) {
    text += ", CA " + DescribePem(config.certificate_authority);
  }
  if (!config.tls_server_name.empty()) {
    text += ", server name " + Quoted(config.tls_server_name);
  }
  if (!config.client_certificate.empty()) {
    text += ", certificate " + DescribePem(config.client_certificate);
  }
  if (!config.token_file.empty()) {
    text += ", token in " + Quoted(config.token_file.string());
  } else if (!config.token.empty()) {
    text += ", token in the kubeconfig";
  }
  if (!config.proxy_url.empty()) {
    text += ", proxy " + Quoted(WithoutUserInfo(config.proxy_url.Reveal()));
  }
  if (!config.act_as.user.empty()) {
    text += ", as " + Quoted(config.act_as.user);
  }
  return text + ")";
}

}  // namespace devmgr::apiserver
