<?php
// "Hello, world", or in the experiment `dynamic` a query value echoed in XML.
if ($_SERVER['EXPERIMENT'] === 'dynamic') {
    $inside = isset($_GET['value'])
        ? '<value>' . htmlspecialchars($_GET['value'], ENT_NOQUOTES | ENT_XML1) . '</value>'
        : '<error>no value specified</error>';
    $body = "<http_test>$inside</http_test>";
    header('Content-Type: text/xml');
} else {
    $body = 'Hello, world';
    header('Content-Type: text/plain');
}
header('Content-Length: ' . strlen($body));
echo $body;
