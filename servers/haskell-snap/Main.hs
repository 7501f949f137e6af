{-# LANGUAGE OverloadedStrings #-}
-- The post's dynamic answer, and "Hello, world" in the experiments that ask for it, by Snap.
--
-- snap-server EXPERIMENT HOST PORT BACKLOG
module Main (main) where

import Data.ByteString (ByteString)
import qualified Data.ByteString.Char8 as B
import Network.Socket (listen)
import Snap.Core
import Snap.Http.Server
import System.Environment (getArgs)

dynamic :: Snap ()
dynamic = getQueryParam "value" >>= answer "text/xml" . body
  where
    body (Just value) | not (B.null value) =
      B.concat ["<http_test><value>", B.concatMap escape value, "</value></http_test>"]
    body _ = "<http_test><error>no value specified</error></http_test>"

escape :: Char -> ByteString
escape '&' = "&amp;"
escape '<' = "&lt;"
escape '>' = "&gt;"
escape other = B.singleton other

-- Without a length Snap sends an answer in chunks.
answer :: ByteString -> ByteString -> Snap ()
answer kind body = do
  modifyResponse (setContentType kind . setContentLength (fromIntegral (B.length body)))
  writeBS body

main :: IO ()
main = do
  [experiment, host, port, backlog] <- getArgs
  httpServe
    ( setBind (B.pack host)
        . setPort (read port)
        -- Snap listens with a backlog of 150; Linux lets a second listen(2) change it.
        . setStartupHook (mapM_ (`listen` read backlog) . getStartupSockets)
        . setAccessLog ConfigNoLog
        . setErrorLog ConfigNoLog
        . setVerbose False
        $ defaultConfig
    )
    (if experiment == "dynamic" then dynamic else answer "text/plain" "Hello, world")
