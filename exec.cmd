@rem cmd.exe has no `exec`, with which `npm start` begins the service: other shells have it built in.
@%*
