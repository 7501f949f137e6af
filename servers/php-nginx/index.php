<?php
$body = 'Hello, world';
header('Content-Type: text/plain');
header('Content-Length: ' . strlen($body));
echo $body;
