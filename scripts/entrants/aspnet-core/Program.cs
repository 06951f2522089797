// SPDX-License-Identifier: MIT
//
// ASP.NET Core on Kestrel, its own server. It heeds the processor affinity by itself: the thread
// pool has a thread per processor that this process may use.

using System.Text;

static string Setting(string name) =>
    Environment.GetEnvironmentVariable(name)
    ?? throw new InvalidOperationException($"{name} is not set");

var body = Encoding.UTF8.GetBytes(Setting("BODY"));
var host = Setting("HOST");
var urlHost = host.Contains(':') ? $"[{host}]" : host;

var builder = WebApplication.CreateSlimBuilder(args);
// By default each request is logged on the console.
builder.Logging.ClearProviders();
builder.WebHost.UseUrls($"http://{urlHost}:{Setting("PORT")}");

var app = builder.Build();
app.Run(async context =>
{
    context.Response.ContentType = "text/plain";
    // Without a length the body would be chunked.
    context.Response.ContentLength = body.Length;
    await context.Response.Body.WriteAsync(body);
});
app.Run();
